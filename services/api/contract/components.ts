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

const prefix = '#/components/schemas/';

/** A record without rules for its keys. */
const anyKey = '^.*$';

const typeOfConst = (value: unknown): string => (value === null ? 'null' : typeof value);

const valueText = (value: unknown): string =>
  `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``;

/** Without a format, generators take an integer for one of 32 bits. */
const widthOf = ({ maximum }: ContractNode): ContractNode =>
  typeof maximum === 'number' && maximum < 2 ** 31 ? {} : { format: 'int64' };

/** Words of a member that the server fills where it is absent. A keyword would make clients send the value. */
export const withDefault = (description: unknown, preset: unknown): string => {
  const words = preset === null ? '' : `Default: ${valueText(preset)}.`;
  return [description, words].filter((one) => one !== undefined && one !== '').join(' ');
};

/** Words of a member of a partial update, which null gives its default again. */
const withReset = (description: unknown, preset: unknown): string =>
  `${description} Null: ${preset === null ? 'none' : valueText(preset)} again.`;

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
    return this.#node(JSON.parse(JSON.stringify(schema)) as ContractNode);
  }

  /** The words of a schema: those of its place, else those under its name. */
  wordsOf(schema: TSchema): unknown {
    const { $ref, description } = this.published(schema);
    return description ?? this.schemas[String($ref).replace(prefix, '')]?.description;
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
    if (Array.isArray(values)) {
      return { ...rest, type: 'string', ...(open === true ? { 'x-extensible-enum': values } : { enum: values }) };
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

  /** A member that may be null, or that is absent where the caller sends null; a union of objects has a name. */
  #union(node: ContractNode): ContractNode {
    const { anyOf, default: preset, nullIsAbsent, description, ...more } = node;
    const rest = without(more, annotations);
    const alternatives = (anyOf as readonly ContractNode[]).filter((one) => !isNull(one));
    const [only, second] = alternatives;
    if (only === undefined || second !== undefined) throw new Error(`a union has no form: ${JSON.stringify(node)}`);
    const inner = this.#node(only);
    const words = description ?? inner.description;
    const said =
      preset === undefined ? words : nullIsAbsent === true ? withDefault(words, preset) : withReset(words, preset);
    const outer = { ...rest, ...(said === undefined || said === '' ? {} : { description: said }) };
    if (nullIsAbsent === true) return { ...inner, ...outer };
    if ('$ref' in inner) return { ...outer, oneOf: [{ $ref: inner.$ref }, nullType] };
    return { ...inner, ...outer, type: [inner.type, 'null'] };
  }
}
