/**
 * What a schema lets stand in stored JSON, in one line, like `id note:null reason?:a|b plan:[PlannedTarget] by:{id}`:
 * `null` may be null, `?` may be missing, `a|b` is one of these texts, `[]` a list, `{}` an object, `{*:}` a map.
 */

interface Node {
  readonly type?: string;
  /** Encrypted with the client's data key. */
  readonly personal?: boolean;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Node[];
  readonly allOf?: readonly Node[];
  readonly items?: Node;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
}

const memberOf = (name: string, value: string, isRequired: boolean): string =>
  `${name}${isRequired ? '' : '?'}${value === '' ? '' : `:${value}`}`;

const mapValue = ({ patternProperties = {}, additionalProperties }: Node): Node | null => {
  const [first] = Object.values(patternProperties);
  return first ?? (typeof additionalProperties === 'object' ? additionalProperties : null);
};

/**
 * Plain texts and numbers have no shape of their own, so that a limit may change; null is `null`.
 * @param known name by shape, put in place of a shape that many events share
 */
export const shapeOf = (schema: unknown, known: ReadonlyMap<string, string> = new Map()): string => {
  const node = schema as Node;
  const named = (shape: string): string => known.get(shape) ?? shape;
  if (node.personal === true) return 'personal';
  if (node.enum !== undefined) return named(node.enum.map(String).join('|'));
  if (node.const !== undefined) return String(node.const);
  const choices = node.anyOf ?? node.allOf;
  if (choices !== undefined) {
    const shapes = [...new Set(choices.map((one) => shapeOf(one, known)))];
    return named(shapes.length === 2 && shapes[0] === '' && shapes[1] === 'null' ? 'null' : shapes.join('|'));
  }
  if (node.type === 'null') return 'null';
  if (node.items !== undefined) return `[${shapeOf(node.items, known)}]`;
  if (node.type !== 'object') return '';
  const value = mapValue(node);
  if (value !== null) return named(`{*:${shapeOf(value, known)}}`);
  return named(`{${membersOf(node, known)}}`);
};

/** The members of an object alone, for an event's data. */
export const membersOf = (schema: unknown, known: ReadonlyMap<string, string> = new Map()): string => {
  const { properties = {}, required = [] } = schema as Node;
  return Object.entries(properties)
    .map(([name, member]) => memberOf(name, shapeOf(member, known), required.includes(name)))
    .join(' ');
};
