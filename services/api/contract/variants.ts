import type { TSchema } from 'typebox';
import { overrideRules } from '#domain/platforms/overrides.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { VariantInput } from '#schemas/http/post-input.ts';
import { type Components, type ContractNode, withDefault } from './components.ts';

/** The variants of a post, one schema for each network, made from the rules that check them. */

const pascal = (key: string): string => `${key.slice(0, 1).toUpperCase()}${key.slice(1)}`;

const UserTag = {
  type: 'object',
  description: 'A person tagged in a picture.',
  required: ['username'],
  properties: {
    username: { type: 'string', minLength: 1, description: 'With or without its @.' },
    x: { type: 'number', minimum: 0, maximum: 1, description: 'From the left edge, as a part of the width.' },
    y: { type: 'number', minimum: 0, maximum: 1, description: 'From the upper edge, as a part of the height.' },
  },
};

const shapeOf = (owner: string, key: string, rule: OverrideRule, components: Components): ContractNode => {
  const longest = (max: number | undefined): ContractNode => (max === undefined ? {} : { maxLength: max });
  switch (rule.type) {
    case 'boolean':
      return { type: 'boolean' };
    case 'string':
    case 'comment':
      return { type: 'string', ...longest(rule.max) };
    case 'url':
      return { type: 'string', format: 'uri', ...longest(rule.max) };
    case 'enum': {
      const description = `Values of \`${key}\`.`;
      return components.named(`${owner}${pascal(key)}`, { type: 'string', description, enum: rule.values });
    }
    case 'list': {
      const most = rule.maxItems === undefined ? {} : { maxItems: rule.maxItems };
      return { type: 'array', items: { type: 'string' }, ...most };
    }
    case 'user_tags':
      return { type: 'array', items: components.named('UserTag', UserTag), maxItems: rule.maxItems };
  }
};

const overridesOf = (platform: Platform, components: Components): ContractNode => {
  const { name, overrides } = rulesOf(platform);
  const required = Object.entries(overrides)
    .filter(([, rule]) => rule.required !== undefined && rule.required.fallback !== true)
    .map(([key]) => key);
  return components.named(`${name}Overrides`, {
    type: 'object',
    description: `Settings of a post for ${name}. Other keys are kept and ignored.`,
    ...(required.length === 0 ? {} : { required }),
    properties: Object.fromEntries(
      Object.entries(overrideRules(platform)).map(([key, rule]) => [
        key,
        { ...shapeOf(name, key, rule, components), description: withDefault(rule.about, rule.default ?? null) },
      ]),
    ),
    additionalProperties: true,
  });
};

/** A variant for each network, told apart by `platform`. */
export const variantInputs = (components: Components): ContractNode => {
  const { platform: _one, overrides, ...members } = VariantInput.properties;
  const shared = Object.fromEntries(
    Object.entries<TSchema>(members).map(([name, member]) => [name, components.published(member)]),
  );
  const references = platforms.map((platform) => {
    const { name } = rulesOf(platform);
    const reference = components.named(`${name}VariantInput`, {
      type: 'object',
      description: `What differs from the post on ${name}.`,
      required: ['platform'],
      properties: {
        platform: { type: 'string', const: platform, description: 'The network.' },
        ...shared,
        overrides: { ...overridesOf(platform, components), description: components.published(overrides).description },
      },
    });
    return [platform, reference.$ref] as const;
  });
  return {
    description: 'What differs from the post on one network.',
    oneOf: references.map(([, $ref]) => ({ $ref })),
    discriminator: { propertyName: 'platform', mapping: Object.fromEntries(references) },
  };
};
