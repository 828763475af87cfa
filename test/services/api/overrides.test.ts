import assert from 'node:assert/strict';
import fc from 'fast-check';
import { checkOverride, overrideRules } from '#domain/platforms/overrides.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { platforms } from '#schemas/common.ts';
import { contractFiles } from '#services/api/emit.ts';
import { operations } from '#services/api/operations.ts';
import { someValue } from '#test/support/override-values.ts';
import { checkerOf } from '#test/support/published.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const contract = JSON.parse(contractFiles(operations)['openapi.json'] ?? '') as Parameters<typeof checkerOf>[0];
const check = checkerOf(contract);

/** What the service takes beyond the contract: other spellings, and one string where the contract has a list. */
const isCourtesy = (rule: OverrideRule, value: unknown): boolean =>
  (rule.type === 'enum' && Object.hasOwn(rule.aliases ?? {}, String(value))) ||
  (typeof value === 'string' && (rule.type === 'user_tags' || (rule.type === 'list' && rule.commas))) ||
  (rule.type === 'user_tags' && Array.isArray(value) && value.every((one) => typeof one === 'string'));

/** What the contract can only say in words: bytes, characters of all tags together, bounds and values of one network. */
const isBeyondSchemas = (rule: OverrideRule, code: string): boolean => code !== 'override_type' || rule.type === 'url';

suite('the schema of overrides', (t) => {
  const schema = contract.components.schemas.NetworkOverrides;

  t('has every key of every network, takes others, and says which networks read a key', () => {
    const keys = new Set(platforms.flatMap((platform) => Object.keys(overrideRules(platform))));
    const properties = (schema?.properties ?? {}) as Readonly<Record<string, { readonly description: string }>>;
    assert.deepEqual(Object.keys(properties), [...keys]);
    assert.deepEqual(check('NetworkOverrides', { nonsense: { deep: [1] } }), []);
    for (const platform of platforms) {
      for (const [key, rule] of Object.entries(overrideRules(platform))) {
        const words = properties[key]?.description ?? '';
        assert.ok(words.includes(rule.about), `${key} of ${platform}`);
        const isOfAll = platforms.every((one) => Object.hasOwn(overrideRules(one), key));
        if (!isOfAll) assert.ok(words.includes(rulesOf(platform).name), `${key} of ${platform}`);
        for (const value of rule.type === 'enum' ? rule.values : []) assert.ok(words.includes(`\`${value}\``), key);
      }
    }
  });

  for (const platform of platforms) {
    const { name } = rulesOf(platform);

    t(`takes what the checks of ${name} take, null for all, and refuses wrong types`, () => {
      const { seed } = seeded(name);
      for (const [key, rule] of Object.entries(overrideRules(platform))) {
        assert.deepEqual(check('NetworkOverrides', { [key]: null }), [], key);
        fc.assert(
          fc.property(someValue(rule), (value) => {
            const problem = checkOverride(platform, rule, value);
            const issues = check('NetworkOverrides', { [key]: value });
            if (problem === null && !isCourtesy(rule, value))
              assert.deepEqual(issues, [], `${key}: ${JSON.stringify(value)}`);
            if (problem !== null && value !== null && !isBeyondSchemas(rule, problem.code))
              assert.notDeepEqual(issues, [], `${key}: ${JSON.stringify(value)}`);
          }),
          { seed, numRuns: 150 },
        );
      }
    });
  }

  t('a variant has a network, and settings of it', () => {
    for (const platform of platforms) {
      assert.deepEqual(check('VariantInput', { platform, overrides: {} }), [], platform);
      assert.notDeepEqual(check('VariantInput', { platform, overrides: { aiGenerated: 'yes' } }), [], platform);
    }
    assert.notDeepEqual(check('VariantInput', { overrides: {} }), []);
  });
});
