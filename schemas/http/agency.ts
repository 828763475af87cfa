import { Type } from 'typebox';
import { Mode, Uuid } from '#schemas/common.ts';
import { Named } from '#schemas/published.ts';
import { stamps } from './common.ts';

/** The workspace of the credential; under a test key its sandbox twin. */

export const Agency = Named(
  'Agency',
  Type.Object({
    id: Uuid,
    object: Type.Literal('agency'),
    name: Type.String(),
    timezone: Type.String(),
    mode: Mode,
    members: Type.Integer({ minimum: 0, description: 'Number of members.' }),
    limits: Named(
      'AgencyLimits',
      Type.Object({
        requestsPerMinute: Type.Integer({ description: 'Per credential and api process.' }),
        requestBurst: Type.Integer({ description: 'Requests at once.' }),
        bodyBytes: Type.Integer(),
        targetsPerPost: Type.Integer(),
      }),
    ),
    ...stamps,
  }),
);
