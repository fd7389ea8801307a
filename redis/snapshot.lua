-- snapshot: the counters, after ended leases are swept and free units offered.
-- Answers {"ok", wake, about, counters...}.
if SHUT then return SHUT end
for _ = 1, 16 do
  if not sweep() then break end
end
settle()
return finish('ok', redis.call('HGET', K_STOCK, 'about') or '', unpack(counters()))
