-- repair (count): corrects a counter by how far it was from its parts.
-- ARGV +1 who rebuilds (repairing.lua), "" for an open SKU,
-- +2 the counter: held, offered, sold (and with it on_hand) or on_hand, +3 what to
-- add to it, +4 the SKU's number of mendings when both were read, +5 actor, +6 why.
-- The caller has added up the parts, which no script could in its time. Every verb
-- moves a counter and its parts together, so how far they are apart stays the same
-- however the SKU moves, until somebody mends either: then the number is another.
-- What held falls by is kept as freed: the units of records that were lost. One of
-- them may come back.
-- Answers {verdict, wake, number of mendings}: ok; changed (another number, or the
-- counter would fall below 0).
local REBUILDS = rebuilds(arg(1))
if SHUT and not REBUILDS then return SHUT end
if REBUILDS then settled = true else sweep() end
read_stock({ 'mended', 'freed' })
local name, delta = arg(2), num(3)
local on_hand = S.on_hand - (name == 'sold' and delta or 0)
if num(4) ~= S.mended or S[name] + delta < 0 or on_hand < 0 then return finish('changed', S.mended) end
add(name, delta)
if name == 'sold' then set('on_hand', on_hand) end
add('mended', 1)
if name == 'held' and delta < 0 then add('freed', -delta) end
-- The line takes the counters up as they stand: it moves none of the ledger's own.
ledger('repair', 'counted', delta, '', { other = name, actor = arg(5), reason = arg(6) })
return finish('ok', S.mended)
