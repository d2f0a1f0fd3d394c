-- unfenced: firing is one conditional transaction, SET → FIRED plus the note; the condition is the fence. Never early.
-- The holder of the run does it without a note, together with its record and under its fence.
update tape.timers set status = 'FIRED'
where run = :run and pos = :pos and purpose = :purpose and tenant is not distinct from :tenant and status = 'SET' and due_at <= tape.now_ms()
