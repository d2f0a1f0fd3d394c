-- unfenced: the store epoch goes up, so that no token is issued twice. 2^40 tokens an epoch, 2^23 epochs.
update meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40 returning epoch
