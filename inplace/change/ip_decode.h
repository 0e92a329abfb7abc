/*-------------------------------------------------------------------------
 * ip_decode.h
 *	  Logical decoding.
 *-------------------------------------------------------------------------
 */
#ifndef IP_DECODE_H
#define IP_DECODE_H

struct LogicalDecodingContext;
struct XLogRecordBuffer;

/* Queue the changes that a record's logical section describes (rm_decode). */
extern void ip_decode(struct LogicalDecodingContext *ctx,
					  struct XLogRecordBuffer *buf);

#endif							/* IP_DECODE_H */
