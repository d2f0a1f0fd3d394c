-- read
-- How far the next look goes. Materialised: beside another column the newest would be found by a scan.
with x as materialized (select max(id) as last from records)
select min(x.last, :after + :limit) as edge, x.last from x where x.last is not null
