/**
 * For every operation: each way to break its schema is refused with the code, the place and the words that belong to it,
 * and nothing is written. That the codes are known and the words for people is checked of every answer, see
 * `test/support/contract.ts`.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import fc from 'fast-check';
import type { TSchema } from 'typebox';
import { mintSession } from '#runtime/identity/sessions.ts';
import type { Operation } from '#services/api/call/operation.ts';
import { operations } from '#services/api/operations.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { seeded } from '#test/support/seed.ts';
import { pointerOf, resolves, type Spoiling, sampleOf, spoiled, spoilings } from '#test/support/spoiled.ts';
import { suite } from '#test/support/suite.ts';

const nowhere = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e00ff';

const withBody = operations.flatMap(({ body, ...rest }) => (body === undefined ? [] : [{ ...rest, body }]));
const withQuery = operations.flatMap(({ query, ...rest }) => (query === undefined ? [] : [{ ...rest, query }]));

/** What spoils the call. An entry of a list that is checked entry by entry spoils only itself. */
const spoilingsOf = ({ body, entries }: (typeof withBody)[number]): readonly Spoiling[] =>
  spoilings(body).filter(({ path }) => path.length < 2 || path[0] !== entries);

suite('spoiled inputs', { drawn: true, costs: 4, timeoutMs: 240_000 }, (t) => {
  let world: World;
  let console: Caller;
  t.before(async () => {
    world = await startWorld();
    const { workspaceId, memberId, deps } = world;
    console = world.callerWith((await mintSession(deps, { workspaceId, memberId, mode: 'live' })).token);
  });
  t.after(() => world.close());

  const pathOf = ({ path }: Pick<Operation, 'path'>): string =>
    path
      .replace('{key}', 'boardId')
      .replace(/\{(sequence|size)\}/, '1')
      .replaceAll(/\{\w+\}/g, nowhere);
  const send = (operation: Pick<Operation, 'method' | 'path' | 'firstParty'>, body: unknown): Promise<Answered> => {
    const caller = operation.firstParty === true ? console : world.owner;
    return caller.request(operation.method, pathOf(operation), { body });
  };
  const writesNothing = async (ask: () => Promise<void>): Promise<void> => {
    const before = await world.head();
    await ask();
    equal(await world.head(), before, 'a refused call stored events');
  };

  /** A body that the schema takes: the example, and for members that it lacks the smallest value. */
  const validOf = ({ example, body }: (typeof withBody)[number]): unknown => example.body ?? sampleOf(body);

  t('each way to spoil one member of a body is told by its code and place', () =>
    writesNothing(async () => {
      let tried = 0;
      for (const operation of withBody) {
        for (const one of spoilingsOf(operation)) {
          const sent = spoiled(operation.body, validOf(operation), one);
          const answer = await send(operation, sent);
          const what = `${operation.id} ${pointerOf(one.path)} ${JSON.stringify(one.value)?.slice(0, 80)}`;
          equal(answer.body.code, 'validation_failed', `${what}: ${answer.text}`);
          deepEqual(
            answer.body.errors?.map(({ path, code }) => [path, code]),
            [[pointerOf(one.path), one.code]],
            what,
          );
          tried += 1;
        }
      }
      ok(tried > 400, `only ${tried} ways were found`);
    }),
  );

  t('each way to spoil one parameter is told by its code and name', () =>
    writesNothing(async () => {
      const asText = (value: unknown): string => (typeof value === 'object' ? 'text' : String(value));
      let tried = 0;
      for (const operation of withQuery) {
        const base = pathOf(operation);
        const ways = spoilings(operation.query).filter(
          // Every value of a query is a text, and a list has at least one entry.
          ({ path, code, value }) =>
            path.length > 0 &&
            !['too_few', 'required'].includes(code) &&
            (code !== 'wrong_type' || value === 'text') &&
            value !== 1e300,
        );
        for (const { path, code, value } of ways) {
          const [name = ''] = path;
          const list = Array.isArray(value) ? value.map(String).join(',') : asText(value);
          const answer = await world.owner.get(`${base}?${name}=${encodeURIComponent(list)}`);
          const what = `${operation.id} ?${name}=${list.slice(0, 80)}: ${answer.text}`;
          equal(answer.body.code, 'invalid_parameter', what);
          const [first, ...more] = answer.body.errors ?? [];
          deepEqual([first?.path, more.length], [`/${name}`, 0], what);
          if (!Array.isArray(sampleOf(operation.query.properties[name] as TSchema))) equal(first?.code, code, what);
          tried += 1;
        }
        for (const [query, code] of [
          ['a/b~c=1', 'unknown_parameter'],
          [`${'n'.repeat(2_000)}=1`, 'unknown_parameter'],
          [`${Object.keys(operation.query.properties)[0]}=%00`, 'invalid_text'],
        ]) {
          const answer = await world.owner.get(`${base}?${query}`);
          equal(answer.body.code, 'invalid_parameter', answer.text);
          deepEqual(
            answer.body.errors?.map((one) => one.code),
            [code],
          );
          ok(answer.text.length < 1_500, 'the answer repeats the whole name');
        }
      }
      ok(tried > 60, `only ${tried} ways were found`);
    }),
  );

  t('several members spoiled at once are told together, each once', () =>
    writesNothing(async () => {
      const { seed } = seeded('spoiled members');
      const several = fc.constantFrom(...withBody).chain((operation) => {
        // Of members that count for different types only some can be wrong at once.
        const ways = spoilingsOf(operation).filter(({ path, conditional }) => path.length > 0 && !conditional);
        return ways.length === 0
          ? fc.constant({ operation, chosen: [] as readonly Spoiling[] })
          : fc
              .array(fc.constantFrom(...ways), { minLength: 1, maxLength: 4 })
              .map((chosen) => ({ operation, chosen: chosen as readonly Spoiling[] }));
      });
      await fc.assert(
        fc.asyncProperty(several, async ({ operation, chosen }) => {
          // Of two in one member the outer one wins; members below a spoiled one cannot be spoiled further.
          const apart = chosen.filter(
            ({ path }, at) =>
              !chosen.some((other, index) => {
                const [a, b] = [pointerOf(path), pointerOf(other.path)];
                return index !== at && (a === b ? index < at : a.startsWith(`${b}/`) || b.startsWith(`${a}/`));
              }),
          );
          if (apart.length === 0) return;
          const sent = apart.reduce((body, one) => spoiled(operation.body, body, one), validOf(operation));
          const answer = await send(operation, sent);
          equal(answer.status, 422, answer.text);
          const reported = answer.body.errors ?? [];
          deepEqual(new Set(reported.map(({ path }) => path)).size, reported.length, answer.text);
          for (const { path } of reported) ok(resolves(sent, path), `${path} leads nowhere in ${JSON.stringify(sent)}`);
          for (const { path, code } of apart) {
            const entry = reported.find((one) => one.path === pointerOf(path));
            equal(entry?.code, code, `${operation.id} ${pointerOf(path)}: ${answer.text}`);
          }
        }),
        { seed, numRuns: 300 },
      );
    }),
  );

  t('texts that no store can hold, numbers that no double can, and nesting', () =>
    writesNothing(async () => {
      const raw = (operation: (typeof withBody)[number], text: string): Promise<Answered> =>
        (operation.firstParty === true ? console : world.owner).request(operation.method, pathOf(operation), {
          raw: text,
          headers: { 'content-type': 'application/json' },
        });
      const deep = `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`;
      for (const operation of withBody) {
        for (const [text, code, path] of [
          ['{"x":"\\u0000"}', 'invalid_text', '/x'],
          ['{"x":["\\ud800"]}', 'invalid_text', '/x/0'],
          ['{"\\udc00":1}', 'invalid_text', ''],
          ['{"x":1e999}', 'too_large', '/x'],
          ['{"x":-1e999}', 'too_small', '/x'],
        ] as const) {
          const answer = await raw(operation, text);
          equal(answer.status, 422, answer.text);
          deepEqual(
            answer.body.errors?.map((one) => [one.path, one.code]),
            [[path, code]],
            operation.id,
          );
        }
        const nested = await raw(operation, deep);
        deepEqual([nested.status, nested.body.code], [400, 'invalid_json'], operation.id);
        const list = await raw(operation, '[]');
        deepEqual(list.body.errors, [{ path: '', code: 'wrong_type', message: 'must be an object' }], operation.id);
      }
    }),
  );

  t('names that the caller chose are never repeated at length', () =>
    writesNothing(async () => {
      const create = withBody.find(({ id }) => id === 'createPost');
      ok(create !== undefined);
      const example = validOf(create) as Readonly<Record<string, unknown>>;
      const names = ['k'.repeat(10_000), '~/'.repeat(2_000), '😀'.repeat(200)];
      const mediaAltTexts = Object.fromEntries(names.map((name) => [name, 1]));
      const sent = { ...example, mediaAltTexts };
      const answer = await send(create, sent);
      deepEqual(answer.body.errors, [
        { path: '/mediaAltTexts', code: 'wrong_type', message: 'below a member with a long name: must be a string' },
      ]);
      const escaped = { ...example, mediaAltTexts: { 'a/b~c': 1, '': 1, '~1': 1 } };
      const reported = (await send(create, escaped)).body.errors ?? [];
      deepEqual(reported.map(({ path }) => path).sort(), [
        '/mediaAltTexts/',
        '/mediaAltTexts/a~1b~0c',
        '/mediaAltTexts/~01',
      ]);
      for (const { path } of reported) ok(resolves(escaped, path));
      const many = {
        ...example,
        mediaAltTexts: Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`k${n}`, 1])),
      };
      const first = await send(create, many);
      equal(first.body.errors?.length, 20);
      match(first.body.errors?.[0]?.path ?? '', /^\/mediaAltTexts\/k\d+$/);
    }),
  );
});
