-- unfenced: nobody repeats a call that is this old
-- At most a handful more than the limit: the oldest, and those of the same moment as the last of them.
delete from tape.repeats where at < (select tape.now_ms()) - :older_ms
  and at <= coalesce((select r.at from tape.repeats r order by r.at limit 1 offset :limit), 9223372036854775807)
