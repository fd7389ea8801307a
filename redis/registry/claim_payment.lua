-- claim_payment: whose a payment is. No verb of a SKU: a reference may be told for
-- holds of several SKUs, so it has a key of its own, and moves no counter.
-- KEYS: 1 hash of one reference: hold; settled, once its money went back.
-- ARGV: 1 hold id, 2 ms to keep it, 3 an owner to replace unless it is settled ('' for
-- none), 4 "settle" or "reopen" by the owner, '' to read, 5 the provider's reference of
-- the refund, for settle.
-- Repeat: the same answer. Answers {owner, 1 when settled, reference}.
local owner, settled = redis.call('HGET', KEYS[1], 'hold'), redis.call('HGET', KEYS[1], 'settled')
if not owner or (owner == ARGV[3] and not settled) then
  owner = ARGV[1]
  redis.call('HSET', KEYS[1], 'hold', owner)
end
if owner == ARGV[1] then
  if ARGV[4] == 'settle' then
    settled = ARGV[5]
    redis.call('HSET', KEYS[1], 'settled', settled)
  elseif ARGV[4] == 'reopen' then
    settled = false
    redis.call('HDEL', KEYS[1], 'settled')
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return { owner, settled and 1 or 0, settled or '' }
