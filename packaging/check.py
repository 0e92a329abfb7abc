#!/usr/bin/env python3
"""Checks META.json against PGXN's meta specification 1.0.0, that all that tells a version tells the same, and that each part of
the top Makefile is in all packages: check.py"""
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
SEMVER = re.compile(r'(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-?[A-Za-z][0-9A-Za-z-]*)?')
TERM = re.compile(r'[^\s/\\\x00-\x1f\x7f]{2,}')
LICENSES = ('agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1 gpl_2 gpl_3 lgpl_2_1 '
            'lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun zlib open_source restricted '
            'unrestricted unknown').split()
REQUIRED = ('name', 'version', 'abstract', 'maintainer', 'license', 'provides', 'meta-spec')
OPTIONAL = ('description', 'generated_by', 'tags', 'no_index', 'prereqs', 'release_status', 'resources')
PHASES = ('configure', 'build', 'test', 'runtime', 'develop')
RELATIONS = ('requires', 'recommends', 'suggests', 'conflicts')

problems = []


def check(condition, what):
    if not condition:
        problems.append(what)


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def is_text(value):
    return isinstance(value, str) and value.strip() != ''


def is_version(value):
    return isinstance(value, str) and SEMVER.fullmatch(value) is not None


def check_top(meta):
    for key in REQUIRED:
        check(key in meta, 'META.json lacks "%s"' % key)
    for key in meta:
        check(key in REQUIRED + OPTIONAL or key.lower().startswith('x_'), 'the specification has no key "%s"' % key)
    check(TERM.fullmatch(meta['name']), 'name')
    check(is_version(meta['version']), 'version is not semantic')
    check(is_text(meta['abstract']), 'abstract')
    maintainers = meta['maintainer'] if isinstance(meta['maintainer'], list) else [meta['maintainer']]
    check(maintainers and all(map(is_text, maintainers)), 'maintainer')
    check(meta['license'] in LICENSES, 'license is none of the specification')
    check(meta.get('release_status', 'stable') in ('stable', 'testing', 'unstable'), 'release_status')
    check(all(map(is_text, meta.get('tags', []))), 'tags')
    spec = meta['meta-spec']
    check(spec.get('version') == '1.0.0' and spec.get('url', '').endswith('pgxn.org/meta/spec.txt'), 'meta-spec')


def check_provides(meta):
    check(bool(meta['provides']), 'provides is empty')
    for name, part in meta['provides'].items():
        check(TERM.fullmatch(name), 'provides: %s' % name)
        check(is_version(part.get('version')), '%s: version is not semantic' % name)
        for key in ('file', 'docfile'):
            check(key in part or key == 'docfile', '%s lacks "%s"' % (name, key))
            check(key not in part or os.path.exists(os.path.join(ROOT, part[key])), '%s: no such %s' % (name, key))


def check_prereqs(meta):
    for phase, relations in meta.get('prereqs', {}).items():
        check(phase in PHASES, 'prereqs: %s' % phase)
        for relation, needed in relations.items():
            check(relation in RELATIONS, 'prereqs: %s' % relation)
            for name, version in needed.items():
                check(version == 0 or is_version(re.sub(r'^[<>=! ]+', '', str(version))), 'prereqs: %s' % name)


def check_versions(meta):
    version = meta['version']
    short = re.search(r"^default_version = '(.*)'", read('inplace/inplace.control'), re.M).group(1)
    told = {
        'inplace.control': short + '.0' * (2 - short.count('.')),
        'provides': meta['provides']['inplace']['version'],
        'debian/changelog': re.search(r'\((.*?)-\d+\)', read('debian/changelog')).group(1),
        'common/compat.h': re.search(r'PG_INPLACE_VERSION\s+"(.*)"', read('common/compat.h')).group(1),
        'the spec': re.search(r'^Version:\s*(\S+)', read('packaging/pg_inplace.spec'), re.M).group(1),
    }
    for where, other in told.items():
        check(other == version, 'META.json has version %s, %s has %s' % (version, where, other))
    check(re.search(r'^## %s\b' % re.escape(short), read('CHANGELOG.md'), re.M), 'CHANGELOG.md does not have %s' % short)
    check(meta['provides']['inplace']['file'].endswith('--%s.sql' % short), 'provides names the script of another version')


def check_parts(meta):
    parts = re.search(r'^PARTS = (.*)', read('Makefile'), re.M).group(1).split()
    spec = read('packaging/pg_inplace.spec')
    check('PARTS=' not in spec, 'the spec does not build all parts')
    for part in parts:
        check(part in meta['provides'], 'META.json does not provide %s' % part)
        for name, version in (('control.in', 'PGVERSION'), ('control', r'\d+')):
            check(re.search('^Package: postgresql-%s-%s$' % (version, part), read('debian/' + name), re.M),
                  'debian/%s has no package of %s' % (name, part))
        check(re.search(r' loop %s postgresql-%%v-%s$' % (part, part), read('debian/rules'), re.M), 'debian/rules does not build %s' % part)
        check(re.search(r'^%%\{ask pkglibdir\}/(lib)?%s\.(so|a)$' % part, spec, re.M), 'the spec has no files of %s' % part)
        check(os.path.exists(os.path.join(ROOT, 'docs', 'users', part + '.md')) or part == 'inplace',
              'docs/users has no %s.md' % part)
    check(set(meta['provides']) == set(parts), 'META.json provides what the Makefile does not have')


def main():
    meta = json.loads(read('META.json'))
    check_top(meta)
    if not problems:
        check_provides(meta)
        check_prereqs(meta)
        check_versions(meta)
        check_parts(meta)
    print('\n'.join(problems) or 'ok')
    sys.exit(len(problems) > 0)


main()
