-- unfenced: settles, after a lost answer, whether the transaction of this witness happened. Its own row is not void; ours
-- is, and where it stands that transaction can no longer commit. The mark is kept: our own answer may be lost as well,
-- and a second question must not take our row for its.
insert into tape.witness(id, at, void) values (:id, tape.now_ms(), true)
on conflict(id) do update set at = witness.at returning void
