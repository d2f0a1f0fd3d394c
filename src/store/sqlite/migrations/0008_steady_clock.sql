-- Sleeps and other relative times count by the clock of the machine's boot, which nobody can set; only what was asked for
-- by date follows the wall clock. Written as a date all the same: the boot's clock plus `anchor`, the difference of the two
-- clocks when the first process of this boot came. A new boot brings a new anchor; what was set before it then counts by
-- the wall clock of the new one.
alter table meta add column anchor integer;
alter table timers add column steady integer not null default 0;
drop index timers_due;
create index timers_due on timers(tenant, steady, due_at) where status = 'SET';
-- Which file this is: a copy that lies beside it has the same text and is another one.
alter table meta add column file text;
