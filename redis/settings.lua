-- settings: what the shop says of the SKU, its policy, and whether it is paused.
-- ARGV +1 about (JSON, or empty), +2 version of about and policy, 0 for none of the
-- two, +3 "1" paused, "0" not, "" as it is, +4 actor, +5 the most units of a person
-- (0 none, "" as it is), +6 the instant in ms at which the sale ends (0 none, "" as
-- it is), +7 policy (JSON, or empty as it is), and with it +8 the greatest age of an
-- offer in ms and +9 the missed turns of a person, each "" for ARGV 8 and 9, +10 who rebuilds (repairing.lua), "" for an open SKU. An
-- older version changes nothing. "again" until all who were at the old limit stand in
-- the line again. Answers {verdict, wake}.
local REBUILDS = rebuilds(arg(10))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
if num(2) > 0 and num(2) < tonumber(redis.call('HGET', K_STOCK, 'version') or '0') then return finish('ok') end
if num(2) > 0 then redis.call('HSET', K_STOCK, 'version', arg(2)) end
if arg(1) ~= '' then redis.call('HSET', K_STOCK, 'about', arg(1)) end
if arg(7) ~= '' and arg(7) ~= redis.call('HGET', K_STOCK, 'policy') then
  redis.call('HSET', K_STOCK, 'policy', arg(7))
  for field, value in pairs({ max_age = arg(8), missed_keep = arg(9) }) do
    if value == '' then
      redis.call('HDEL', K_STOCK, field)
    else
      redis.call('HSET', K_STOCK, field, value)
    end
  end
  ledger('settings', 'policy', 0, '', { actor = arg(4) })
end
if arg(3) ~= '' and num(3) ~= S.paused then
  set('paused', num(3))
  ledger('settings', num(3) == 1 and 'paused' or 'resumed', 0, '', { actor = arg(4) })
end
if arg(5) ~= '' and num(5) ~= S.limit then
  set('limit', num(5))
  if redis.call('EXISTS', K_LIMITED) == 1 then set('look', 1) end
end
if arg(6) ~= '' and num(6) ~= S.ends then
  set('ends', num(6))
  ENDED = S.ends > 0 and WALL >= S.ends
end
settle()
return finish(S.look == 1 and not REBUILDS and 'again' or 'ok')
