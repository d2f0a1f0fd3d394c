-- unfenced: journal numbers are handed out in blocks; an unused rest is lost, which harms nobody. None while the server's
-- timeline is not the recorded one: a promoted standby may not know what was handed out last.
update tape.meta set next_journal = next_journal + :size
where (select tape.on_timeline(m.timeline) from tape.meta m)
returning next_journal - :size as first
