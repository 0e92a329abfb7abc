-- Synthetic table with the statistical shape of HM Land Registry "price paid" (pp-complete).
-- One row for each of :n; to the file :file.
select setseed(0.42);
-- upper-case word generator, lengths like real names
create or replace function ppd_name(seed bigint, minsyl int, maxsyl int) returns text language sql immutable as $$
 select upper(string_agg((array['ba','che','den','wor','ton','ham','ley','ford','shi','re','nor','sou','th','wes','eas','bur','y','mou','king','ox','ing','stow','hill','by','car','mar','lin','col','glou','ster'])[1+(hashint8extended(seed*131+g, 7)&2147483647)%30],'' order by g))
 from generate_series(1, minsyl + ((hashint8extended(seed,3)&2147483647)%(maxsyl-minsyl+1))::int) g $$;
-- 132 counties (zipf 0.8, one dominant ~13%), ~468 districts, ~1,170 towns, ~24k localities (36% of rows: empty locality)
create table ppd_place as
with co as (select c, 1/power(c+0.35,0.80) w from generate_series(1,132) c),
 di as (select c, d, w/power(d,0.6) w from co, lateral generate_series(1, 1+((c*7919)%6)) d),
 tn as (select c, d, t, w/power(t,1.1) w from di, lateral generate_series(1, 1+((c*104729+d*31)%4)) t),
 lo as (select c,d,t,l, case when l=0 then 0.36*w else 0.64*w*power(l,-0.7)/sum(case when l>0 then power(l,-0.7) end) over (partition by c,d,t) end w
        from tn, lateral generate_series(0, 8+((c*17+d*5+t*3)%26)) l)
select row_number() over () id, c, d, t, l,
  case when c=1 then 'GREATER LONDON' else ppd_name(c,2,4) end county,
  case when c=1 and d=1 then 'CITY OF WESTMINSTER' else ppd_name(1000+c*100+d,2,5) end district,
  case when c=1 then 'LONDON' else ppd_name(100000+c*1000+d*10+t,2,4) end city,
  case when l=0 then '' else ppd_name(10000000+c*100000+d*10000+t*100+l,2,5) end locality,
  w, sum(w) over (order by c,d,t,l) cum
from lo;
create unlogged table land_registry_price_paid_uk (
  transaction uuid, price numeric, transfer_date date, postcode text, property_type char(1), newly_built boolean,
  duration char(1), paon text, saon text, street text, locality text, city text, district text, county text,
  ppd_category_type char(1), record_status char(1)) with (autovacuum_enabled=off);
insert into land_registry_price_paid_uk
with cums as materialized (select array_agg(cum::float8 order by id) a, max(cum)::float8 tot from ppd_place),
 r as (select g, random() r1, random() r2, random() r3, random() r4, random() r5, random() r6,
        1+width_bucket(random()*tot, a) pid from cums, generate_series(1,:n) g)
select gen_random_uuid(),
  round(exp(11.9 + 0.75*sqrt(-2*ln(1-r1))*cos(6.283185*r2))::numeric/250)*250,          -- log-normal, heaped at 250s
  date '1995-01-01' + (9800*power(r3,0.95))::int,
  case when r4<0.0016 then null else substr(md5(p.city),1,2)||((p.l*7+1)%30)::text||' '||((r4*5)::int%5)::text||upper(substr(md5((p.id*8+(r5*8)::int)::text),1,2)) end,
  (array['T','S','D','F','O'])[case when r5<.30 then 1 when r5<.575 then 2 when r5<.805 then 3 when r5<.985 then 4 else 5 end],
  r6<0.10, (array['F','L','U'])[case when r6<.76 then 1 when r6<.9999 then 2 else 3 end],
  case when r2<0.93 then (1+floor(power(r3,2.2)*250))::int::text else 'THE '||ppd_name((r3*90000)::bigint,2,4) end,
  case when r4<0.88 then '' else 'FLAT '||(1+floor(power(r5,2)*60))::int end,
  ppd_name(p.id*14+(r1*14)::int,2,4)||' '||(array['ROAD','STREET','AVENUE','CLOSE','LANE','DRIVE','WAY','COURT'])[1+(p.id+(r1*60)::int)%8],
  p.locality, p.city, p.district, p.county, case when r6>0.955 then 'B' else 'A' end, 'A'
from r join ppd_place p on p.id = least(r.pid,(select count(*) from ppd_place));
copy land_registry_price_paid_uk to :'file';
drop table land_registry_price_paid_uk, ppd_place;
