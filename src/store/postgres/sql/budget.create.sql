-- unfenced: written with the run it belongs to
insert into tape.budgets(run, unit, cap, tenant) select :run, :unit, :cap, r.tenant from tape.runs r where r.journal = :run
