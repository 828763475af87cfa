import fc from 'fast-check';
import type { OverrideRule } from '#domain/platforms/rules.ts';

/** Values of an override key: some that its rule allows, some just outside of it, some of another type. */

const text = (max: number | undefined) => fc.string({ maxLength: Math.min((max ?? 60) + 3, 2100), unit: 'grapheme' });

const ownValue = (rule: OverrideRule): fc.Arbitrary<unknown> => {
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

/** @param ofRule how many times as often a value is of the rule's own type as of another */
export const someValue = (rule: OverrideRule, ofRule = 4): fc.Arbitrary<unknown> => {
  const wrong = fc.constantFrom<unknown>(1, {}, [], true, 'no', [1], [{}], 'ftp://example.com');
  return fc.oneof({ weight: ofRule, arbitrary: ownValue(rule) }, { weight: 1, arbitrary: wrong });
};

/** A value that the rule takes and that is no default, for a key of a network: nothing else in a post has it. */
export const markedValue = (platform: string, key: string, rule: OverrideRule): unknown => {
  const mark = `${platform} ${key} <i>&"mark"`;
  switch (rule.type) {
    case 'boolean':
      return rule.default !== true;
    case 'string':
      // A title takes no angle brackets.
      return mark.replace(/[<>]/g, '').slice(0, rule.max);
    case 'comment':
      return mark;
    case 'enum':
      return rule.values.find((one) => one !== rule.default) ?? '';
    case 'url':
      return `https://example.com/${platform}/${key}?a=1&b=2`;
    case 'list':
      return [`${platform}${key}1`, `${platform}${key}2`];
    case 'user_tags':
      return [{ username: `${platform}${key}`, x: 0.25, y: 0.75 }];
  }
};
