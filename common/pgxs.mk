# PGXS of the server that PG_CONFIG names; for the makefiles of the parts.

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

ifeq ($(filter 15 16 17 18 19,$(MAJORVERSION)),)
$(error pg_inplace supports PostgreSQL 15 to 19; $(PG_CONFIG) belongs to $(MAJORVERSION))
endif
