import type { TSchema } from 'typebox';
import { annotations } from '#schemas/published.ts';

/** Turns the schemas of the validators into those of the contract, in forms that generators of clients understand. */

export type ContractNode = Record<string, unknown>;

const isObject = (value: unknown): value is ContractNode =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const without = (node: ContractNode, names: readonly string[]): ContractNode =>
  Object.fromEntries(Object.entries(node).filter(([name]) => !names.includes(name)));
const mapped = (node: unknown, change: (one: ContractNode) => ContractNode): ContractNode =>
  Object.fromEntries(Object.entries(node as Record<string, ContractNode>).map(([name, one]) => [name, change(one)]));

const nullType = { type: 'null' };
const isNull = (node: ContractNode): boolean => node.type === 'null';
const copyOf = (schema: TSchema): ContractNode => JSON.parse(JSON.stringify(schema)) as ContractNode;

/** The one schema of a union that is not null. @throws Error because generators guess at the members of other unions */
const onlyOf = (node: ContractNode): ContractNode => {
  const [only, second] = (node.anyOf as readonly ContractNode[]).filter((one) => !isNull(one));
  if (only === undefined || second !== undefined) throw new Error(`a union has no form: ${JSON.stringify(node)}`);
  return only;
};

const joined = (...texts: readonly unknown[]): string =>
  texts.filter((one) => typeof one === 'string' && one !== '').join(' ');
const described = (description: unknown): ContractNode =>
  description === undefined || description === '' ? {} : { description };

const prefix = '#/components/schemas/';

/** A record without rules for its keys. */
const anyKey = '^.*$';

const typeOfConst = (value: unknown): string => (value === null ? 'null' : typeof value);

const valueText = (value: unknown): string =>
  `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``;

/** Without a format, generators take an integer for one of 32 bits. */
const widthOf = ({ maximum }: ContractNode): ContractNode =>
  typeof maximum === 'number' && maximum < 2 ** 31 ? {} : { format: 'int64' };

const closedWords = 'Other values are refused.';

/** Words of a member that the server fills where it is absent. A keyword would make clients send the value. */
export const withDefault = (description: unknown, preset: unknown): string => {
  const words = preset === null ? '' : `Default: ${valueText(preset)}.`;
  return joined(description, words);
};

/** Words of a member of a partial update, which null gives its default again. */
const withReset = (description: unknown, preset: unknown): string =>
  `${description} Null: ${preset === null ? 'none' : valueText(preset)} again.`;

/** Whether the schema is a text with a name. */
const isText = ({ named, type, enum: values }: ContractNode): boolean =>
  typeof named === 'string' && (type === 'string' || Array.isArray(values));

/** Schemas that are made from other data than their validator, by name. */
type Made = Readonly<Record<string, (self: Components) => ContractNode>>;

/** @param siblings whether words may stand beside a reference: AsyncAPI forbids it */
export class Components {
  readonly schemas: Record<string, ContractNode> = {};
  readonly responses: Record<string, ContractNode> = {};
  readonly #responseNames = new Map<string, string>();
  readonly #made: Made;
  readonly #siblings: boolean;

  constructor({ made = {}, siblings = true }: { readonly made?: Made; readonly siblings?: boolean } = {}) {
    this.#made = made;
    this.#siblings = siblings;
  }

  /** The schema as published: a reference where it has a name. */
  published(schema: TSchema): ContractNode {
    return this.#node(copyOf(schema));
  }

  /**
   * A parameter as published, which is absent or has a value and so is never null, with the words of its place, else
   * those under its name.
   */
  parameter(schema: TSchema): { readonly description: unknown; readonly schema: ContractNode } {
    const node = copyOf(schema);
    const { description: words, ...value } = this.#node(node.anyOf === undefined ? node : onlyOf(node));
    const named = this.schemas[String(value.$ref).replace(prefix, '')]?.description;
    return { description: node.description ?? words ?? named, schema: value };
  }

  /** Publishes an object of the contract's own under a name. @throws Error when the name has another shape already */
  named(name: string, body: ContractNode): ContractNode {
    const known = this.schemas[name];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(body)) {
      throw new Error(`two schemas are named ${name}:\n${JSON.stringify(known)}\n${JSON.stringify(body)}`);
    }
    this.schemas[name] = body;
    return { $ref: `${prefix}${name}` };
  }

  /**
   * Publishes a response once: operations that answer alike refer to one component, under the name that the first gave.
   * @throws Error when the name has another response already
   */
  response(name: string, body: ContractNode): ContractNode {
    const text = JSON.stringify(body);
    const known = this.#responseNames.get(text) ?? name;
    if (known === name && JSON.stringify(this.responses[name] ?? body) !== text) {
      throw new Error(`two responses are named ${name}:\n${JSON.stringify(this.responses[name])}\n${text}`);
    }
    this.#responseNames.set(text, known);
    this.responses[known] = body;
    return { $ref: `#/components/responses/${known}` };
  }

  #node(node: ContractNode): ContractNode {
    const { named, here, examples } = node;
    if (typeof named !== 'string') return this.#body(node);
    const reference = this.#named(named, node);
    return here === undefined || !this.#siblings
      ? reference
      : { ...reference, description: here, ...(examples ? { examples } : {}) };
  }

  #named(name: string, node: ContractNode): ContractNode {
    const made = this.#made[name];
    const own = node.here === undefined ? node : without(node, ['examples']);
    return this.named(name, made === undefined ? this.#body(own) : made(this));
  }

  #body(node: ContractNode): ContractNode {
    if (node.anyOf !== undefined) return this.#union(node);
    if (node.shown !== undefined) return this.#body({ ...without(node, ['shown']), ...(node.shown as ContractNode) });
    const { open, patternProperties, properties, items, additionalProperties, enum: values, ...more } = node;
    // A format says it to generators; with a pattern too, some of them match the text of a date that they have parsed.
    const rest = without(more, more.format === undefined ? annotations : [...annotations, 'pattern']);
    // A text with its values listed. Of a closed one generators make a type whose names some of them send as the values.
    if (Array.isArray(values)) {
      const words = joined(rest.description, open === true ? '' : closedWords);
      return { ...rest, type: 'string', ...described(words), 'x-extensible-enum': values };
    }
    if ('const' in node) return { type: typeOfConst(node.const), ...rest };
    // Null today, an id tomorrow: generators have no type for null alone.
    if (isNull(node)) return { ...rest, type: ['string', 'null'] };
    if (node.type === 'integer') return { ...rest, ...widthOf(node) };
    const map = isObject(patternProperties) ? Object.entries(patternProperties) : [];
    const [[key, member] = []] = map;
    if (map.length > 1 || (key !== undefined && key !== anyKey)) {
      throw new Error(`the contract has no form for the keys ${key}`);
    }
    const extra = (member as ContractNode | undefined) ?? additionalProperties;
    return {
      ...rest,
      ...(properties === undefined ? {} : { properties: mapped(properties, (one) => this.#node(one)) }),
      ...(items === undefined ? {} : { items: this.#node(items as ContractNode) }),
      ...(extra === undefined ? {} : { additionalProperties: this.#extra(extra) }),
    };
  }

  #extra(schema: unknown): unknown {
    return isObject(schema) && Object.keys(schema).length > 0 ? this.#node(schema) : true;
  }

  /**
   * A member that may be null. So is one that is absent where the caller sends null: a language whose numbers and flags
   * cannot be null would send 0 and false for each that its caller leaves out.
   */
  #union(node: ContractNode): ContractNode {
    const { anyOf, default: preset, nullIsAbsent, description, ...more } = node;
    const only = onlyOf(node);
    const inner = isText(only) ? this.#textInPlace(only, description) : this.#node(only);
    const words = isText(only) ? inner.description : (description ?? inner.description);
    const said =
      preset === undefined ? words : nullIsAbsent === true ? withDefault(words, preset) : withReset(words, preset);
    const outer = { ...without(more, annotations), ...described(said) };
    if ('$ref' in inner) return { ...outer, oneOf: [{ $ref: inner.$ref }, nullType] };
    return { ...inner, ...outer, type: [inner.type, 'null'] };
  }

  /** A named text without its name: generators lose a member that is a union of a named text and null. */
  #textInPlace(node: ContractNode, words: unknown): ContractNode {
    const { description, ...body } = this.#body(without(node, ['named', 'here']));
    return { ...body, ...described(joined(words ?? node.here, description)) };
  }
}
