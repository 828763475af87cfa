import { Type } from 'typebox';
import { ActorRef, Instant, Nullable, Uuid } from '#schemas/common.ts';
import { Named, said } from '#schemas/published.ts';
import { Maybe, UuidInput } from './common.ts';

/** A link through which a guest of the client decides about a request for approval. */

export const ApprovalLinkCreate = Named(
  'ApprovalLinkCreate',
  Type.Object(
    {
      expiresInHours: Maybe(
        Type.Integer({ minimum: 1, maximum: 720, description: 'Hours until the link stops working. Absent: 168.' }),
      ),
    },
    { description: 'How long a link works.' },
  ),
);

export const ApprovalLinkParams = Type.Object({
  id: said(UuidInput, 'Id of the request for approval.'),
  linkId: said(UuidInput, 'Id of the link.'),
});

export const ApprovalLink = Named(
  'ApprovalLink',
  Type.Object(
    {
      object: Type.Literal('approval_link', { description: 'The kind of resource.' }),
      linkId: said(Uuid, 'Id of the link: with a decision through it, the id in `decidedBy`.'),
      approvalId: said(Uuid, 'The request that it is for.'),
      url: Nullable(
        Type.String({
          format: 'uri',
          description:
            'The page of the guest. Who has it may decide. Null once the link has expired or is revoked, and in lists.',
        }),
      ),
      token: Nullable(Type.String({ description: 'The secret part of `url`; null as there.' })),
      createdBy: said(
        ActorRef,
        'The member or key that made it. The link works while the member behind it may decide.',
      ),
      decidedAt: said(Nullable(Instant), 'When a guest decided through it; null: none did.'),
      isRevoked: Type.Boolean({ description: 'Whether it was revoked before its end.' }),
      expiresAt: said(Instant, 'When it stops working.'),
      createdAt: said(Instant, 'When it was made.'),
    },
    { description: 'A link through which a guest of the client decides about one request for approval.' },
  ),
);
