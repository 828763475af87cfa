import { Type } from 'typebox';
import { Nullable } from '#schemas/common.ts';

/** A page of the catalogue of errors. */

export const ErrorParams = Type.Object({
  code: Type.String({
    pattern: '^[a-z0-9_]{1,100}$',
    expects: 'lower-case letters, digits and underscores, such as not_found',
  }),
});

export const ErrorPage = Type.Object({
  object: Type.Literal('error'),
  code: Type.String(),
  type: Type.String({ description: 'Address of this page: the `type` of a problem.' }),
  status: Nullable(Type.Integer({ description: 'Null for codes of failed targets, assets and report runs.' })),
  category: Type.Enum(['request', 'auth', 'permission', 'conflict', 'limit', 'internal', 'media', 'target', 'report']),
  title: Type.String(),
  about: Type.String(),
});
