import assert from 'node:assert/strict';
import fc from 'fast-check';
import { checkOverride, overrideRules } from '#domain/platforms/overrides.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { platforms } from '#schemas/common.ts';
import { contractFiles } from '#services/api/contract/emit.ts';
import { checkerOf } from '#test/support/published.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const contract = JSON.parse(contractFiles()['openapi.json'] ?? '') as Parameters<typeof checkerOf>[0];
const check = checkerOf(contract);

/** Values of a key, some of them just outside of its rule. */
const someValue = (rule: OverrideRule): fc.Arbitrary<unknown> => {
  const text = (max: number | undefined) => fc.string({ maxLength: Math.min((max ?? 60) + 3, 2100), unit: 'grapheme' });
  const wrong = fc.constantFrom<unknown>(1, {}, [], true, 'no', [1], [{}], 'ftp://example.com');
  const own = (): fc.Arbitrary<unknown> => {
    switch (rule.type) {
      case 'boolean':
        return fc.boolean();
      case 'string':
      case 'comment':
        return text(rule.max);
      case 'enum':
        return fc.constantFrom(...rule.values);
      case 'url':
        return fc.webUrl();
      case 'list':
        return fc.array(fc.string({ minLength: 1, maxLength: 10 }), { maxLength: (rule.maxItems ?? 4) + 1 });
      case 'user_tags':
        return fc.array(
          fc.record(
            { username: fc.string(), x: fc.double({ min: -0.1, max: 1.1, noNaN: true }), y: fc.nat(2) },
            { requiredKeys: ['username'] },
          ),
          { maxLength: rule.maxItems + 1 },
        );
    }
  };
  return fc.oneof({ weight: 4, arbitrary: own() }, { weight: 1, arbitrary: wrong });
};

/** What the service takes beyond the contract: other spellings, and one string where the contract has a list. */
const isCourtesy = (rule: OverrideRule, value: unknown): boolean =>
  (rule.type === 'enum' && Object.hasOwn(rule.aliases ?? {}, String(value))) ||
  (typeof value === 'string' && (rule.type === 'user_tags' || (rule.type === 'list' && rule.commas))) ||
  (rule.type === 'user_tags' && Array.isArray(value) && value.every((one) => typeof one === 'string'));

/** What the contract can only say in words: bytes, characters of all tags together, text limits of a network. */
const isBeyondSchemas = (rule: OverrideRule): boolean =>
  (rule.type === 'string' && rule.maxBytes !== undefined) ||
  (rule.type === 'list' && rule.maxChars !== undefined) ||
  (rule.type === 'comment' && rule.asPost) ||
  rule.type === 'url';

suite('schemas of overrides', (t) => {
  for (const platform of platforms) {
    const { name } = rulesOf(platform);

    t(`${name}Overrides has every key of the rules, and takes others`, () => {
      const schema = contract.components.schemas[`${name}Overrides`];
      assert.deepEqual(Object.keys(schema?.properties ?? {}), Object.keys(overrideRules(platform)));
      const required = (schema?.required ?? []) as readonly string[];
      const set = Object.fromEntries(required.map((key) => [key, key === 'boardId' ? '1' : 'SELF_ONLY']));
      assert.deepEqual(check(`${name}Overrides`, { ...set, nonsense: { deep: [1] } }), []);
    });

    t(`${name}Overrides takes what the checks take, and refuses what they refuse`, () => {
      const required = (contract.components.schemas[`${name}Overrides`]?.required ?? []) as readonly string[];
      const { seed } = seeded(name);
      for (const [key, rule] of Object.entries(overrideRules(platform))) {
        fc.assert(
          fc.property(someValue(rule), (value) => {
            const problem = checkOverride(platform, rule, value, { [key]: value });
            const others = Object.fromEntries(
              required.filter((one) => one !== key).map((one) => [one, one === 'boardId' ? '1' : 'SELF_ONLY']),
            );
            const issues = check(`${name}Overrides`, { ...others, [key]: value });
            if (problem === null && !isCourtesy(rule, value))
              assert.deepEqual(issues, [], `${key}: ${JSON.stringify(value)}`);
            if (problem !== null && !isBeyondSchemas(rule))
              assert.notDeepEqual(issues, [], `${key}: ${JSON.stringify(value)}`);
          }),
          { seed, numRuns: 150 },
        );
      }
    });
  }

  t('a variant is told apart by its network, and its overrides are those of the network', () => {
    for (const platform of platforms) {
      const one = (overrides: object) => check('VariantInput', { platform, overrides });
      const set = { tiktok: { privacyLevel: 'SELF_ONLY' }, pinterest: { boardId: '1' } };
      const fitting = Object.hasOwn(set, platform) ? set[platform as keyof typeof set] : {};
      assert.deepEqual(one(fitting), [], platform);
      assert.notDeepEqual(one({ ...fitting, aiGenerated: 'yes' }), [], platform);
    }
    assert.notDeepEqual(check('VariantInput', { platform: 'tiktok', overrides: {} }), []);
    assert.notDeepEqual(check('VariantInput', { platform: 'myspace' }), []);
  });
});
