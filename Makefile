# pg_inplace: each part has a Makefile of its own, for PGXS; this one visits them.
#
#   make                    build all for the pg_config on the PATH
#   make PG_CONFIG=...      build for another server
#   make install
#   make dist               the release of the last commit: dist/pg_inplace-VERSION.tar.gz, and .zip for PGXN
#
# walpack needs libzstd with its header (libzstd-dev); make PARTS=inplace does without.

PARTS = inplace walpack pagedelta pbtree

all install uninstall clean:
	@set -e; for part in $(PARTS); do $(MAKE) -C $$part $@; done

installcheck:
	$(MAKE) -C inplace $@

# Of what is committed, with the commit's time, so that the same commit gives the same bytes on any machine.
DISTNAME = pg_inplace-$(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)
ARCHIVE = TZ=UTC git -c tar.umask=0022 -c core.autocrlf=false archive --prefix=$(DISTNAME)/

dist:
	mkdir -p dist
	$(ARCHIVE) --format=tar HEAD >dist/$(DISTNAME).tar
	gzip -n -9 -f dist/$(DISTNAME).tar
	$(ARCHIVE) --format=zip HEAD >dist/$(DISTNAME).zip
	cd dist && sha256sum $(DISTNAME).tar.gz $(DISTNAME).zip

.PHONY: all install uninstall clean installcheck dist
