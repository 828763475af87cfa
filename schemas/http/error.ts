import { Type } from 'typebox';
import { Nullable } from '#schemas/common.ts';
import { Named, OpenEnum, said } from '#schemas/published.ts';

/** A page of the catalogue of errors. */

export const ErrorParams = Type.Object({
  code: Type.String({
    pattern: '^[a-z0-9_]{1,100}$',
    description: 'The `code` of a problem, or of a failure of a target, an asset or a run of a report.',
    examples: ['validation_failed'],
    expects: 'lower-case letters, digits and underscores, such as not_found',
  }),
});

const Category = OpenEnum(
  'ErrorDocCategory',
  ['request', 'auth', 'permission', 'conflict', 'limit', 'internal', 'media', 'target', 'report'],
  'What a code is about. request: the request is not valid; auth: the token; permission: what the token or the role may do; conflict: the state of the resource; limit: too many requests; internal: a fault of the service; media, target, report: what an asset, a target or a run of a report fails with.',
);

export const ErrorDoc = Named(
  'ErrorDoc',
  Type.Object(
    {
      object: Type.Literal('error', { description: 'The kind of resource.' }),
      code: Type.String({ description: 'The code: stable, branch on it.', examples: ['not_found'] }),
      type: Type.String({
        description: 'Address of this page: the `type` of a problem.',
        examples: ['https://api.example/v1/errors/not_found'],
      }),
      status: said(
        Nullable(Type.Integer()),
        'HTTP status of the answers with this code; null for codes of failed targets, assets and report runs, which no answer has as its own.',
        { examples: [404] },
      ),
      category: said(Category, 'What the code is about.'),
      title: Type.String({
        description: 'What went wrong, in a few words.',
        examples: ['The resource does not exist'],
      }),
      about: Type.String({ description: 'What happened, and what the caller can do.' }),
    },
    { description: 'What an error code means.' },
  ),
);
