# pg_inplace: an extension made by PGXS.
#
#   make                    build for the pg_config on the PATH
#   make PG_CONFIG=...      build for another server
#   make install installcheck

MODULE_big = inplace
OBJS = \
	src/ip_check.o \
	src/ip_check_row.o \
	src/ip_check_undo.o \
	src/ip_decode.o \
	src/ip_delta.o \
	src/ip_fetch.o \
	src/ip_guard.o \
	src/ip_handler.o \
	src/ip_index.o \
	src/ip_index_delete.o \
	src/ip_init.o \
	src/ip_insert.o \
	src/ip_inspect.o \
	src/ip_lock.o \
	src/ip_lockers.o \
	src/ip_logical.o \
	src/ip_modify.o \
	src/ip_page.o \
	src/ip_page_apply.o \
	src/ip_page_desc.o \
	src/ip_prune.o \
	src/ip_rewrite.o \
	src/ip_row.o \
	src/ip_scan.o \
	src/ip_slot.o \
	src/ip_space.o \
	src/ip_toast.o \
	src/ip_undo.o \
	src/ip_undo_ring.o \
	src/ip_undo_shrink.o \
	src/ip_undo_use.o \
	src/ip_update.o \
	src/ip_vacuum.o \
	src/ip_vacuum_index.o \
	src/ip_vacuum_report.o \
	src/ip_version.o \
	src/ip_wal.o \
	src/ip_xid.o \
	tidset/tidset.o \
	tidset/tidset_arena.o \
	tidset/tidset_block.o \
	tidset/tidset_check.o \
	tidset/tidset_leaf.o \
	tidset/tidset_node.o \
	tidset/tidset_pg.o

EXTENSION = inplace
DATA = sql/inplace--1.0.sql
PGFILEDESC = "inplace - tables that are updated in place"

# version 15's PGXS does not hide a module's symbols
PG_CFLAGS += -fvisibility=hidden -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers

# the server must have been started with shared_preload_libraries = 'inplace'
REGRESS = $(shell sed -n 's/^test: *//p' test/regress/schedule)
REGRESS_OPTS = --inputdir=test/regress --outputdir=test/regress
ISOLATION = $(shell sed -n 's/^test: *//p' test/isolation/schedule 2>/dev/null)
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=test/isolation

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

$(OBJS): $(wildcard src/*.h tidset/*.h)
