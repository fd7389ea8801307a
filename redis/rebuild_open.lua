-- rebuild (open): sets the counters of a closed SKU to what its records and its book
-- say, and the fence last.
-- ARGV +1 who rebuilds (repairing.lua), +2 epoch, +3 on_hand,
-- +4 held, +5 offered, +6 sold, +7 received, +8 corrected, +9 returned, +10
-- generation, +11 the least number that the next ledger line follows, +12 the version of the last
-- level.
-- The counters' line (repair counted) takes up what stands. Then as open: nothing
-- lapses or expires for 60 s.
-- Answers {verdict, wake}: ok.
if not rebuilds(arg(1)) then return SHUT or { 'changed', 0 } end
settled = true
for i, name in ipairs({ 'on_hand', 'held', 'offered', 'sold', 'received', 'corrected', 'returned' }) do
  set(name, num(2 + i))
end
read_stock({ 'mended', 'freed' })
set('epoch', math.max(S.epoch + 1, num(2)))
set('gen', math.max(S.gen, num(10)))
set('n', math.max(S.n, num(11)))
set('level', math.max(S.level, num(12)))
set('quiet', NOW + 60000)
set('freed', 0)
add('mended', 1)
ledger('repair', 'counted', 0, '', { actor = 'reconcile', reason = 'rebuilt' })
redis.call('HDEL', K_STOCK, 'counted_until', 'rebuild')
redis.call('HSET', K_STOCK, 'fence', SHUT[2])
ledger('open', 'checked', 0, SHUT[2], { actor = 'reconcile' })
return finish('ok')
