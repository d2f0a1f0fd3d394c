-- name: bookings.create
-- unfenced: a table of the simulated caller, beside the store's own
create table if not exists bookings(run text not null, booking text not null);

-- name: bookings.begin
-- read
begin immediate;

-- name: bookings.commit
-- read
commit;

-- name: bookings.add
-- unfenced: a row of the simulated caller; the store's transaction around it is what a simulation tests
-- writes: bookings
insert into bookings(run, booking) values (:run, :booking);

-- name: bookings.list
-- read
select run, booking from bookings order by rowid;
