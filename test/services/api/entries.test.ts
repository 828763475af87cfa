import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Type } from 'typebox';
import { Rejection } from '#domain/decider.ts';
import { BodyNotes } from '#schemas/http/clean.ts';
import { Maybe } from '#schemas/http/common.ts';
import type { Piece } from '#services/api/call/bodies.ts';
import { readEntries } from '#services/api/call/entries.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const Item = Type.Object({ a: Type.Integer(), b: Maybe(Type.Unknown()) });
const Body = Type.Object({ list: Type.Array(Item, { minItems: 1, maxItems: 50 }) });

suite('entries of a body, each checked alone', (t) => {
  const atOnce: Piece = async (work) => work();
  const read = (text: string, piece = atOnce) => readEntries(Body, 'list', Buffer.from(text), new BodyNotes(), piece);
  const refusal = async (text: string): Promise<string> => {
    try {
      await read(text);
      return 'none';
    } catch (error) {
      assert.ok(error instanceof Rejection);
      return error.code;
    }
  };

  t('agree with a parser that reads the body as a whole, whatever stands beside and inside of them', async () => {
    const item = fc.oneof(
      { weight: 3, arbitrary: fc.record({ a: fc.oneof(fc.integer(), fc.string()), b: fc.jsonValue({ maxDepth: 3 }) }) },
      { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
    );
    const body = fc.record({
      before: fc.jsonValue({ maxDepth: 4 }),
      list: fc.array(item, { minLength: 1, maxLength: 6 }),
      after: fc.array(fc.jsonValue({ maxDepth: 3 })),
    });
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(0, 1, 3), async (value, indent) => {
        const { entries } = await read(JSON.stringify(value, null, indent));
        const sent = JSON.parse(JSON.stringify(value)).list as readonly unknown[];
        assert.equal(entries.length, sent.length);
        for (const [at, entry] of entries.entries()) {
          const one = sent[at] as { readonly a?: unknown; readonly b?: unknown } | null;
          const fits = typeof one === 'object' && one !== null && !Array.isArray(one) && Number.isInteger(one.a);
          // A double that is no integer of the schema, and text that no store holds, are refused too.
          if (!fits) assert.ok('refusal' in entry, JSON.stringify(one));
          else if ('body' in entry) {
            const expected = one.b === undefined || one.b === null ? { a: one.a } : { a: one.a, b: one.b };
            assert.deepEqual(entry.body, expected);
          }
        }
      }),
      { seed: seeded('entries').seed, numRuns: 500 },
    );
  });

  t('a text is JSON exactly when the parser says so, wherever it was damaged', async () => {
    const whole = '{"x":[{"k":"]}"},[1]],"list":[{"a":1,"b":"\\"}{"},{"a":2}],"y":{"list":[{"a":3}]}}';
    for (let at = 0; at < whole.length; at += 1) {
      for (const damaged of [whole.slice(0, at) + whole.slice(at + 1), `${whole.slice(0, at)}}${whole.slice(at)}`]) {
        let isJson = true;
        try {
          JSON.parse(damaged);
        } catch {
          isJson = false;
        }
        assert.equal((await refusal(damaged)) !== 'invalid_json', isJson, damaged);
      }
    }
  });

  t('equal entries have equal digests, others do not', async () => {
    const { digests } = await read(
      '{"list":[{"a":1,"b":{"x":1,"y":2}},{"b":{"y":2,"x":1},"a":1,"c":3},{"a":2},7,{"a":"1"}]}',
    );
    assert.equal(digests[0], digests[1]);
    assert.equal(new Set(digests).size, 4);
  });

  t('no step works on more than one entry, or on more than 256 KiB of the text', async () => {
    const entry = `{"a":1,"b":"${'x'.repeat(900_000)}"}`;
    const text = `{"list":[${Array(10).fill(entry).join()}],"other":[${Array(5_000).fill('{"z":1}').join()}]}`;
    let steps = 0;
    const { entries } = await read(text, async (work) => {
      steps += 1;
      return work();
    });
    assert.equal(entries.length, 10);
    // The scan, the envelope, four steps for each entry, and five for the list that is ignored.
    assert.equal(steps, Math.ceil(text.length / (256 * 1_024)) + 1 + 40 + 5);
  });
});
