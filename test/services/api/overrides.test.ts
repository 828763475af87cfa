import assert from 'node:assert/strict';
import fc from 'fast-check';
import { checkOverride, overrideRules } from '#domain/platforms/overrides.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { platforms } from '#schemas/common.ts';
import { contractFiles } from '#services/api/contract/emit.ts';
import { someValue } from '#test/support/override-values.ts';
import { checkerOf } from '#test/support/published.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const contract = JSON.parse(contractFiles()['openapi.json'] ?? '') as Parameters<typeof checkerOf>[0];
const check = checkerOf(contract);

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
            const problem = checkOverride(platform, rule, value);
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
