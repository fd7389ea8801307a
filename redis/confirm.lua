-- confirm: a live hold becomes a sale by a payment. First to pay wins.
-- ARGV +1 hold id, +2 payment ref, +3 amount, +4 currency, +5 actor.
-- The same ref again: ok. Refused: refunded (the ref is marked), hold-ended,
-- payment-conflict (another ref made the sale), shortfall, unknown.
-- Answers {verdict, wake, ms left, ms now, 0, record}.
if SHUT then return SHUT end
local id, ref = arg(1), arg(2)
sweep()
local h = touch_hold(id)
if not h then return finish_hold('unknown', nil) end
if h[H_STATE] == 'sold' then
  return finish_hold(h[H_REF] == ref and 'ok' or 'payment-conflict', h)
end
if h[H_REFUNDED] ~= 0 then
  for _, marked in ipairs(h[H_REFUNDED]) do
    if marked == ref then return finish_hold('refunded', h) end
  end
end
if h[H_STATE] ~= 'held' and h[H_STATE] ~= 'provisional' then return finish_hold('hold-ended', h) end
if S.on_hand < h[H_UNITS] then return finish_hold('shortfall', h) end
add('held', -h[H_UNITS])
add('on_hand', -h[H_UNITS])
add('sold', h[H_UNITS])
redis.call('ZREM', K_LEASES, id)
h[H_STATE] = 'sold'
h[H_ENDED] = NOW
h[H_REF] = ref
put_hold(id, h)
purge_later('h:' .. id, KEEP_SALE)
end_entry(h[H_ENTRY], 'bought', true)
ledger('confirm', 'sold', h[H_UNITS], id,
  { person = h[H_PERSON], actor = arg(5), ref = ref, amount = arg(3), currency = arg(4) })
return finish_hold('ok', h)
