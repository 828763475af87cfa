/** What callers read when an input does not fit its schema: a code, a place and words, never a pattern. */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { type TSchema, Type } from 'typebox';
import { Uuid } from '#schemas/common.ts';
import { clean } from '#schemas/http/clean.ts';
import { Defaulted, InstantInput, Maybe } from '#schemas/http/common.ts';
import { wordedKeywords } from '#schemas/issue-words.ts';
import { issueCodes } from '#schemas/issues.ts';
import { annotations, forType } from '#schemas/published.ts';
import { issuesOf, maxIssues } from '#schemas/validator.ts';
import { contractFiles } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { isJargon } from '#test/support/jargon.ts';
import { suite } from '#test/support/suite.ts';

type Part = Readonly<Record<string, unknown>>;

/** Keywords that hold further schemas, or say something for readers alone. */
const structural = new Set(['properties', 'items', 'anyOf', 'additionalProperties', 'patternProperties']);
const forReaders = new Set<string>([
  ...['description', 'default', 'examples', 'title', '$id', 'discriminator'],
  ...annotations,
]);

/** Every schema within a schema. */
const partsOf = (schema: unknown): readonly Part[] => {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, patternProperties, items, anyOf, additionalProperties } = schema as Part;
  const below = [
    ...Object.values((properties ?? {}) as Part),
    ...Object.values((patternProperties ?? {}) as Part),
    ...((anyOf ?? []) as readonly unknown[]),
    items,
    additionalProperties,
  ];
  return [schema as Part, ...below.flatMap(partsOf)];
};

const inputs = operations.flatMap(({ id, params, query, body }) =>
  Object.entries({ params, query, body }).flatMap(([kind, schema]) =>
    schema === undefined ? [] : partsOf(schema).map((part) => ({ where: `${id} ${kind}`, part })),
  ),
);

const codesOf = (schema: TSchema, value: unknown) => issuesOf(schema, value).map(({ path, code }) => [path, code]);
const wordsOf = (schema: TSchema, value: unknown) => issuesOf(schema, value).map(({ message }) => message);

suite('words for inputs that do not fit', (t) => {
  t('every pattern and format of an input says in words what it expects, with an example that fits', () => {
    const formed = inputs.filter(({ part }) => part.pattern !== undefined || part.format !== undefined);
    ok(formed.length > 50, `only ${formed.length} patterns were found: the walk is broken`);
    for (const { where, part } of formed) {
      const words = String(part.expects ?? '');
      const example = / such as (.+)$/.exec(words)?.[1];
      ok(example !== undefined, `${where}: ${JSON.stringify(part)} has no words`);
      deepEqual(issuesOf(part as TSchema, example), [], `${where}: ${words}`);
      ok(!isJargon(words), words);
    }
  });

  t('every id of an input is taken in upper case too, and read in lower case', () => {
    const id = '0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001';
    const ids = inputs.filter(({ part }) => part.format === 'uuid');
    ok(ids.length > 30, `only ${ids.length} ids were found: the walk is broken`);
    for (const { where, part } of ids) {
      deepEqual(issuesOf(part as TSchema, id.toUpperCase()), [], where);
      equal(clean(part as TSchema, id.toUpperCase()), id, where);
    }
    deepEqual(codesOf(Uuid, id.toUpperCase()), [['', 'wrong_format']], 'what is stored and answered stays strict');
  });

  t('a member that counts only for another type may hold anything, and is dropped', () => {
    const Moment = Type.Object({ type: Type.Enum(['now', 'at']), when: forType('at', Maybe(Type.Integer())) });
    const Nested = Type.Object({ list: Type.Array(Moment), byName: Type.Record(Type.String(), Moment) });
    const nested = (one: unknown) => ({ list: [{ type: 'at', when: 1 }, one], byName: { type: one } });
    deepEqual(codesOf(Nested, nested({ type: 'now', when: 'soon' })), []);
    deepEqual(codesOf(Nested, nested({ type: 'at', when: 'soon' })), [
      ['/list/1/when', 'wrong_type'],
      ['/byName/type/when', 'wrong_type'],
    ]);
    deepEqual(codesOf(Type.Object({ one: Maybe(Moment) }), { one: { type: 'now', when: 'soon' } }), []);
    deepEqual(codesOf(Moment, { when: 'soon' }), [['/type', 'required']]);
    deepEqual(codesOf(Moment, { type: 'later', when: 'soon' }), [['/type', 'not_allowed']]);
    deepEqual(clean(Nested, nested({ type: 'now', when: { deep: true } })).list[1], { type: 'now' });
    deepEqual(clean(Moment, { type: 'at', when: 2 }), { type: 'at', when: 2 });
  });

  t('every keyword of an input has words', () => {
    const used = new Set(inputs.flatMap(({ part }) => Object.keys(part)));
    const known = (keyword: string) =>
      wordedKeywords.has(keyword) || structural.has(keyword) || forReaders.has(keyword) || keyword.startsWith('x-');
    deepEqual(
      [...used].filter((keyword) => !known(keyword)),
      [],
    );
  });

  t('the words of patterns are not published', () => {
    for (const [name, text] of Object.entries(contractFiles(operations))) ok(!text.includes('"expects"'), name);
  });

  t('every code has one sentence', () => {
    for (const [code, about] of Object.entries(issueCodes)) {
      match(code, /^[a-z]+(_[a-z]+)*$/);
      match(about, /^[A-Z].*\.$/, code);
    }
  });

  t('each way not to fit has its code and its words', () => {
    const table: readonly (readonly [TSchema, unknown, string, string])[] = [
      [Type.String(), 1, 'wrong_type', 'must be a string'],
      [Type.Integer(), 1.5, 'wrong_type', 'must be a whole number'],
      [Type.Number(), '1', 'wrong_type', 'must be a number'],
      [Type.Boolean(), 'yes', 'wrong_type', 'must be true or false'],
      [Type.Array(Type.String()), {}, 'wrong_type', 'must be an array'],
      [Type.Object({}), [], 'wrong_type', 'must be an object'],
      [{ type: ['string', 'null'] } as TSchema, 1, 'wrong_type', 'must be a string'],
      [{ type: 'string', enum: ['a', 'b'] } as TSchema, 1, 'wrong_type', 'must be a string'],
      [Type.Enum(['a', 'b']), 'c', 'not_allowed', 'must be one of: a, b'],
      [{ enum: ['a', 'b', null] } as TSchema, 'c', 'not_allowed', 'must be one of: a, b'],
      [Type.Literal('a'), 'b', 'not_allowed', 'must be a'],
      [Type.String({ minLength: 1 }), '', 'too_short', 'must not be empty'],
      [Type.String({ minLength: 2 }), 'a', 'too_short', 'must have at least 2 characters'],
      [Type.String({ maxLength: 50_000 }), 'a'.repeat(50_001), 'too_long', 'must have at most 50,000 characters'],
      [Type.Array(Type.Integer(), { minItems: 1 }), [], 'too_few', 'must not be empty'],
      [Type.Array(Type.Integer(), { maxItems: 1 }), [1, 2], 'too_many', 'must have at most 1 entry'],
      [Type.Array(Type.Integer(), { uniqueItems: true }), [1, 1], 'repeated', 'must not have the same entry twice'],
      [Type.Integer({ minimum: 0 }), -1, 'too_small', 'must be at least 0'],
      [Type.Integer({ maximum: 86_400_000 }), 1e300, 'too_large', 'must be at most 86,400,000'],
      [Uuid, 'x', 'wrong_format', 'must be a uuid in lower case, such as 0198a5f0-7c1e-7b10-9c55-3a1d5b6e0001'],
      [
        InstantInput('When.'),
        'tomorrow',
        'wrong_format',
        'must be an instant with Z or an offset, such as 2026-01-31T08:00:00Z',
      ],
    ];
    for (const [schema, value, code, message] of table) {
      deepEqual(issuesOf(schema, value), [{ path: '', code, message }], JSON.stringify(schema));
    }
  });

  t('a list of many allowed values is cut between two of them', () => {
    const [message = ''] = wordsOf(Type.Enum(Array.from({ length: 500 }, (_, n) => `value_${n}`)), 'x');
    ok(message.length < 1_100);
    match(message, /^must be one of: (value_\d+, )+…$/);
  });

  t('null is a missing member where one is required, and absent where it is not', () => {
    const schema = Type.Object({
      name: Type.String(),
      kind: Type.Enum(['a']),
      more: Maybe(Type.Object({ id: Uuid })),
      filled: Defaulted(Type.String(), 'x'),
      labels: Type.Optional(Type.Record(Type.String(), Type.String())),
      list: Type.Optional(Type.Array(Type.String())),
    });
    deepEqual(codesOf(schema, {}), [
      ['/name', 'required'],
      ['/kind', 'required'],
    ]);
    deepEqual(codesOf(schema, { name: null, kind: null, more: { id: null }, filled: null }), [
      ['/name', 'required'],
      ['/kind', 'required'],
      ['/more/id', 'required'],
    ]);
    deepEqual(codesOf(schema, { name: 'a', kind: 'a', labels: { a: null }, list: [null] }), [
      ['/labels/a', 'wrong_type'],
      ['/list/0', 'wrong_type'],
    ]);
  });

  t('a member is named once, however many of its rules it breaks', () => {
    deepEqual(codesOf(Type.Object({ name: Type.String({ minLength: 1, pattern: '\\S' }) }), { name: '' }), [
      ['/name', 'too_short'],
    ]);
    deepEqual(codesOf(Type.Object({ at: InstantInput('When.') }), { at: 'x' }), [['/at', 'wrong_format']]);
  });

  t('of 10,000 wrong entries as many are named as an answer has room for', () => {
    const wrong = Array.from({ length: 10_000 }, () => 1);
    const issues = issuesOf(Type.Object({ ids: Type.Array(Uuid) }), { ids: wrong });
    equal(issues.length, maxIssues);
    deepEqual(issues.at(-1), { path: `/ids/${maxIssues - 1}`, code: 'wrong_type', message: 'must be a string' });
  });

  t('pointers escape what callers write, and end above a name that is too long to repeat', () => {
    const map = Type.Record(Type.String(), Type.String());
    deepEqual(codesOf(map, { 'a/b~c': 1 }), [['/a~1b~0c', 'wrong_type']]);
    deepEqual(codesOf(map, { '~1': 1 }), [['/~01', 'wrong_type']]);
    deepEqual(codesOf(map, { ['~'.repeat(100)]: 1 }), [[`/${'~0'.repeat(100)}`, 'wrong_type']]);
    deepEqual(issuesOf(Type.Object({ labels: map }), { labels: { ['k'.repeat(101)]: 1, ['l'.repeat(999)]: 1 } }), [
      { path: '/labels', code: 'wrong_type', message: 'below a member with a long name: must be a string' },
    ]);
    const deep = Type.Cyclic({ Deep: Type.Record(Type.String(), Type.Ref('Deep')) }, 'Deep');
    let value: unknown = 1;
    for (let level = 0; level < 32; level += 1) value = { ['d'.repeat(90)]: value };
    const [issue] = issuesOf(deep, value);
    ok(issue !== undefined && issue.path.length <= 1_000 && issue.path.length > 900);
    match(issue.path, /^(\/d{90})+$/);
  });
});
