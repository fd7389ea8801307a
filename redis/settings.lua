-- settings: what the shop says of the SKU, and whether it is paused.
-- ARGV +1 about (JSON, or empty), +2 its version, +3 "1" paused, "0" not, ""
-- as it is, +4 actor. An older version changes nothing. Answers {"ok", wake}.
if SHUT then return SHUT end
sweep()
if arg(1) ~= '' and num(2) >= tonumber(redis.call('HGET', K_STOCK, 'version') or '0') then
  redis.call('HSET', K_STOCK, 'about', arg(1), 'version', arg(2))
end
if arg(3) ~= '' and num(3) ~= S.paused then
  set('paused', num(3))
  ledger('settings', num(3) == 1 and 'paused' or 'resumed', 0, '', { actor = arg(4) })
end
return finish('ok')
