/*-------------------------------------------------------------------------
 * test_install.c
 *	  Use of the installed library, from C and from C++.
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <tidset.h>

int
main(void)
{
	uint16_t	offsets[] = {3, 1, 200};
	TidSet	   *set = tidset_create_malloc(65536);
	bool		good = set != NULL && tidset_add_block(set, 7, offsets, 3) &&
		tidset_count(set) == 3 && tidset_member(set, 7, 200) &&
		!tidset_member(set, 8, 200);

	if (set != NULL)
		tidset_destroy(set);
	printf("%s\n", good ? "ok" : "wrong answers");
	return good ? 0 : 1;
}
