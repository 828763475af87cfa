import { overrideRules } from '#domain/platforms/overrides.ts';
import { rulesOf } from '#domain/platforms/registry.ts';
import type { OverrideRule } from '#domain/platforms/rules.ts';
import { platforms } from '#schemas/common.ts';
import { type Components, type ContractNode, withDefault } from './components.ts';

/**
 * The settings of all networks as one object, made from the rules that check them. One schema for each network would be
 * a union, of which some generators cannot name the items, and others guess which member is meant.
 */

const UserTag = {
  type: 'object',
  description: 'A person tagged in a picture.',
  required: ['username'],
  properties: {
    username: { type: 'string', minLength: 1, description: 'With or without its @.' },
    x: { type: ['number', 'null'], minimum: 0, maximum: 1, description: 'From the left edge, as a part of the width.' },
    y: {
      type: ['number', 'null'],
      minimum: 0,
      maximum: 1,
      description: 'From the upper edge, as a part of the height.',
    },
  },
};

/** A key as one network reads it. */
interface Use {
  readonly network: string;
  readonly rule: OverrideRule;
}

/** The largest of the bounds; none where one use has none. */
const widest = (name: string, bounds: readonly (number | undefined)[]): ContractNode =>
  bounds.every((one) => one !== undefined) ? { [name]: Math.max(...bounds) } : {};

const textOf = (rules: readonly OverrideRule[]): ContractNode => {
  const values = rules.flatMap((rule) => (rule.type === 'enum' ? rule.values : []));
  const maxima = rules.map((rule) => ('max' in rule ? rule.max : undefined));
  return {
    type: ['string', 'null'],
    ...(rules.every(({ type }) => type === 'url') ? { format: 'uri' } : {}),
    ...widest('maxLength', maxima),
    ...(values.length === 0 ? {} : { 'x-extensible-enum': [...new Set(values)] }),
  };
};

const kindOf = ({ type }: OverrideRule): 'boolean' | 'list' | 'user_tags' | 'text' =>
  type === 'boolean' || type === 'list' || type === 'user_tags' ? type : 'text';

/** @throws Error where two networks have the key with different types: then it needs a form of its own here */
const shapeOf = (key: string, uses: readonly Use[], components: Components): ContractNode => {
  const rules = uses.map(({ rule }) => rule);
  const [kind, second] = [...new Set(rules.map(kindOf))];
  if (second !== undefined) throw new Error(`networks disagree about the type of ${key}: ${kind}, ${second}`);
  const maxItems = widest(
    'maxItems',
    rules.map((rule) => ('maxItems' in rule ? rule.maxItems : undefined)),
  );
  switch (kind) {
    case 'boolean':
      return { type: ['boolean', 'null'] };
    case 'list':
      return { type: ['array', 'null'], items: { type: 'string' }, ...maxItems };
    case 'user_tags':
      return { type: ['array', 'null'], items: components.named('UserTag', UserTag), ...maxItems };
    default:
      return textOf(rules);
  }
};

/** "X, Threads: Who may reply." for each group of networks that reads the key alike. */
const wordsOf = (uses: readonly Use[]): string => {
  const groups = Map.groupBy(uses, ({ rule }) => {
    const values = rule.type === 'enum' ? ` One of ${rule.values.map((one) => `\`${one}\``).join(', ')}.` : '';
    return withDefault(`${rule.about}${values}`, rule.default ?? null);
  });
  return [...groups]
    .map(([words, alike]) =>
      alike.length === platforms.length ? words : `${alike.map(({ network }) => network).join(', ')}: ${words}`,
    )
    .join(' ');
};

export const networkOverrides = (components: Components): ContractNode => {
  const byKey = Map.groupBy(
    platforms.flatMap((platform) =>
      Object.entries(overrideRules(platform)).map(([key, rule]) => ({ key, network: rulesOf(platform).name, rule })),
    ),
    ({ key }) => key,
  );
  return {
    type: 'object',
    description:
      'Settings of a post for one network. Each member names the networks that read it; on others it is kept and ignored, as an unknown member is.',
    properties: Object.fromEntries(
      [...byKey].map(([key, uses]) => [key, { ...shapeOf(key, uses, components), description: wordsOf(uses) }]),
    ),
    additionalProperties: true,
  };
};
