import { equal, ok } from 'node:assert/strict';
import fc from 'fast-check';
import { isShort, jsonPieces } from '#services/api/call/json.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const piecesOf = async (value: unknown): Promise<readonly string[]> => {
  const pieces: string[] = [];
  for await (const one of jsonPieces(value)) pieces.push(one);
  return pieces;
};

suite('JSON in pieces', { drawn: true, costs: 2 }, (t) => {
  const { seed } = seeded('JSON pieces');
  const text = 'é"😀\\'.repeat(20_000);

  t('joined, they are what JSON.stringify writes', async () => {
    const long = fc.constantFrom(text, 'short', [], {}, null, 7, undefined, new Date(0));
    const values = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, long, fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
    })).value;
    await fc.assert(
      fc.asyncProperty(values, async (value) => {
        const whole = JSON.stringify(value) ?? 'null';
        equal((await piecesOf(value)).join(''), whole);
        if (typeof value === 'object' && value !== null && whole.length > 200_000) ok(!isShort(value));
      }),
      { seed, numRuns: 300 },
    );
  });

  t('each is short, or ends with one long text', async () => {
    const pieces = await piecesOf({ rows: Array.from({ length: 50 }, () => ({ id: 1, text })) });
    ok(pieces.length >= 50, `${pieces.length} pieces`);
    const most = Math.max(...pieces.map((one) => one.length));
    ok(most <= 2 * JSON.stringify(text).length, `${most} characters`);
  });
});
