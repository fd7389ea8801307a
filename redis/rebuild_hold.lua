-- rebuild (hold): makes a hold's record of a closed SKU what its workflow says.
-- ARGV +1 who rebuilds (repairing.lua), +2 hold id, +3 the version
-- of the record that was read, 0 for none, +4 state, +5 units, +6 person, +7 entry id
-- or "", +8 generation, +9 created ms, +10 deadline ms, +11 "1" when it was extended,
-- +12 the lines of a cart on its first line, or "", +13 ended ms or 0, +14 reason,
-- +15 the payment of a sale, +16 "1" when it was sold after it had expired, +17 "1" for
-- a sale that the counters have not counted, +18 when an offer was told in ms or 0, +19
-- the payments that are marked for refund as JSON, or "".
-- A walk-in's provisional hold is one that its workflow has yet to adopt: its lease lasts
-- as long as nothing expires after the opening, whatever the deadline says.
-- A sale is counted at once, so that a rebuild which begins anew still has it; the
-- opening sets the other counters. A sale never becomes anything else. The
-- entry follows: of a live hold it is offered or holding, of a sale bought; an offer
-- that is withdrawn (released, reason reconcile) leaves it at its place in the line;
-- any other end is a missed turn.
-- Answers {verdict, wake}: ok; changed.
if not rebuilds(arg(1)) then return SHUT or { 'changed', 0 } end
settled = true
local id, state, entry = arg(2), arg(4), arg(7)
local was = get_hold(id)
if (was and was[H_VERSION] or 0) ~= num(3) or was and was[H_STATE] == 'sold' then return finish('changed') end
local h = new_hold(state, num(5), arg(6), entry, num(8), num(10), arg(12))
if was then
  for _, i in ipairs({ H_VERSION, H_OFFERED, H_TOLD, H_SENT, H_UNTIL, H_BACK, H_AMOUNT, H_CURRENCY, H_REFUNDED, H_RETURNED }) do
    h[i] = was[i]
  end
end
h[H_CREATED], h[H_EXTENDED], h[H_ENDED], h[H_REASON] = num(9), num(11), num(13), arg(14)
h[H_REF], h[H_RETAKEN] = arg(15), num(16)
if h[H_TOLD] == 0 then h[H_TOLD] = num(18) end
for _, ref in ipairs(arg(19) ~= '' and cjson.decode(arg(19)) or {}) do
  if not marked(h, ref) then mark(h, ref) end
end
local live = state == 'held' or state == 'offered' or state == 'provisional'
if state == 'provisional' then h[H_DEADLINE] = NOW + 60000 end
if state == 'offered' and h[H_OFFERED] == 0 then h[H_OFFERED] = h[H_CREATED] end
put_hold(id, h)
redis.call('ZREM', K_LEASES, id)
if state == 'provisional' then redis.call('ZADD', K_LEASES, h[H_DEADLINE], id) end
if live then
  redis.call('ZREM', K_PURGE, 'h:' .. id)
else
  purge_later('h:' .. id, state == 'sold' and KEEP_SALE or KEEP)
end
if state ~= 'offered' or h[H_TOLD] > 0 then outbox_drop('o:' .. id) end
local e = entry ~= '' and get_entry(entry)
if e and entry_live(e) then
  if live then
    out_of_line(entry)
    e[E_STATE], e[E_HOLD], e[E_GEN] = state == 'held' and 'holding' or 'offered', id, num(8)
    put_entry(entry, e)
  elseif state == 'sold' then
    end_entry(entry, 'bought', true)
  elseif e[E_HOLD] == id and e[E_STATE] ~= 'waiting' and arg(14) == 'reconcile' then
    e[E_STATE], e[E_HOLD] = 'waiting', ''
    put_entry(entry, e)
    redis.call('ZADD', K_LINE, e[E_ARRIVAL], entry)
    outbox_add('e:' .. entry)
  elseif e[E_HOLD] == id and e[E_STATE] ~= 'waiting' then
    miss_turn(entry, true)
  end
end
if arg(17) == '1' then add('sold', num(5)) end
hold_line('repair', 'rebuilt', id, h, 'reconcile', { reason = state, ref = arg(15) })
return finish('ok')
