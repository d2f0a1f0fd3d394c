-- unfenced: by the transaction that claimed the key, whose call was refused: the key is as it was
delete from repeats where tenant = :tenant and key = :key
