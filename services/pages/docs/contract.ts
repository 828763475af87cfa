/** The parts of an OpenAPI document that the reference reads. */

export interface MediaExample {
  readonly schema?: SchemaNode;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value?: unknown }>>;
}

export interface SchemaNode {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
}

export interface ParameterNode {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema?: SchemaNode;
  readonly example?: unknown;
}

export interface OperationNode {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly security?: readonly unknown[];
  readonly parameters?: readonly (ParameterNode | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaExample>> };
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, MediaExample>> }>>;
  readonly [member: string]: unknown;
}

/** Operations by method, in lower case. */
export type PathNode = Readonly<Record<string, OperationNode>>;

export interface TagNode {
  readonly name: string;
  readonly description?: string;
  readonly [member: string]: unknown;
}

export interface Contract {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly TagNode[];
  readonly paths: Readonly<Record<string, PathNode>>;
  /** By event type: each refers to a path item of `components`. */
  readonly webhooks: Readonly<Record<string, { readonly $ref: string }>>;
  readonly components: {
    readonly parameters: Readonly<Record<string, ParameterNode>>;
    readonly pathItems: Readonly<Record<string, PathNode>>;
    readonly [member: string]: unknown;
  };
  readonly [member: string]: unknown;
}

/** `#/components/parameters/IdempotencyKey` → `IdempotencyKey`. */
export const nameOfRef = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

export const parametersOf = ({ components }: Contract, { parameters = [] }: OperationNode): readonly ParameterNode[] =>
  parameters.flatMap((one) => {
    if (!('$ref' in one)) return [one];
    const found = components.parameters[nameOfRef(one.$ref)];
    return found === undefined ? [] : [found];
  });

const json = 'application/json';

/** The first example of a JSON body; undefined without one. */
export const exampleOf = (content: Readonly<Record<string, MediaExample>> | undefined): unknown => {
  const { example, examples = {} } = content?.[json] ?? {};
  return example ?? Object.values(examples)[0]?.value;
};

export const bodySchemaOf = ({ requestBody }: OperationNode): SchemaNode | undefined =>
  requestBody?.content[json]?.schema;
