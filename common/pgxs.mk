# PGXS of the server that PG_CONFIG names; for the makefiles of the parts.

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

ifeq ($(filter 15 16 17 18,$(MAJORVERSION)),)
$(error pg_inplace supports PostgreSQL 15, 16, 17 and 18; $(PG_CONFIG) belongs to $(MAJORVERSION))
endif
