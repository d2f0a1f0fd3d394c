-- unfenced: proves, after a lost answer, whether the batch of this name was committed
insert into witness(id, at) values (:id, :at)
