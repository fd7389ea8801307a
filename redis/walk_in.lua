-- The walk-in that a sale is made of, before the rest is made: what it asks for is
-- free, nobody waits for it, no lease has ended, nothing is to be handed out. It
-- writes what reserve would, the record of new_hold and the line of hold_line, as
-- texts, which cost a third of tables. The record is first: if the id is known
-- nothing was written. What is not as plain is left to reserve.
-- Answers {"ok", 0, ms left, ms now, 0, "", generation}: the caller knows the rest
-- of the record.
local id, units, person, cart = ARGV[10], ARGV[11] + 0, ARGV[12], ARGV[15]
if S.on_hand - S.held - S.offered >= units and S.paused == 0 and not ENDED and S.look == 0 and AHEAD == 0 and ARGV[13] ~= '1' and
  redis.call('EXISTS', K_LINE, K_BACK, K_FRESH, K_OUTBOX, K_OFFERS) == 0 and
  (S.held == 0 or redis.call('ZCOUNT', K_LEASES, '-inf', NOW) == 0) and
  (S.limit == 0 or S.limit - (redis.call('HGET', K_TALLY, person) or 0) >= units) then
  local v = redis.call('HMGET', K_STOCK, 'sold', 'gen', 'epoch', 'n', 'ahead', 'on_hand', 'offered')
  local sold, gen, epoch, n = v[1] or '0', v[2] or '0', v[3] or '0', int((v[4] or 0) + 1)
  local now, deadline, held = int(NOW), int(NOW + LEASE), int(S.held + units)
  local record = '["provisional",' .. ARGV[11] .. ',' .. cjson.encode(person) .. ',"",' .. gen .. ',' .. now .. ',' .. deadline ..
    ',1,0,0,0,0,0,0,"","",0,"","",0,0,0,' .. (cart == '' and '""' or cjson.encode(cart)) .. ']'
  if (v[5] or '0') == '0' and redis.call('HSETNX', K_HOLDS, id, record) == 1 then
    redis.call('ZADD', K_LEASES, deadline, id)
    redis.call('HINCRBY', K_TALLY, person, ARGV[11])
    redis.call('HSET', K_STOCK, 'held', held, 'n', n, 'seen', int(NOW_US))
    redis.call('XADD', K_LEDGER, '*', 't', now, 'e', epoch, 'n', n, 'v', 'reserve', 'k', 'walk-in', 'u', ARGV[11],
      'i', id, 'x', '', 'p', person, 'a', ARGV[14], 'r', '', 'g', gen, 'f', '', 'm', '', 'c', '', 'oh', v[6],
      'h', held, 'o', v[7] or '0', 's', sold)
    return { 'ok', 0, LEASE, NOW, 0, '', gen }
  end
end
