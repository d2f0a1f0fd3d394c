-- unfenced: written with the run it belongs to
insert into budgets(run, unit, cap, tenant) select :run, :unit, :cap, r.tenant from runs r where r.journal = :run
