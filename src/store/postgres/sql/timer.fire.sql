-- unfenced: firing is one conditional transaction, SET → FIRED plus the note; the condition is the fence. Never early.
update tape.timers set status = 'FIRED'
where run = :run and pos = :pos and purpose = :purpose and status = 'SET' and due_at <= tape.now_ms()
