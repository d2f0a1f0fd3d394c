-- read
-- Who decides over the effect, and goes on deciding until our commit: a hand-over waits for us, or we for it.
select authority from tape.effects where run = :run and pos = :pos and sub = :sub for share
