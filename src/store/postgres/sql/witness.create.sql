-- unfenced: proves, after a lost answer, whether the batch of this name was committed
insert into tape.witness(id, at) values (:id, tape.now_ms())
