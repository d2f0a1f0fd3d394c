-- unfenced: written with the run it belongs to
insert into tape.budgets(run, unit, cap) values (:run, :unit, :cap)
