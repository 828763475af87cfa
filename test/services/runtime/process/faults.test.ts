import { equal } from 'node:assert/strict';
import { DatabaseError } from 'pg';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import { EventStoreError, type EventStoreErrorCode } from '#contracts/ports/event-store.ts';
import { LogError } from '#contracts/ports/log.ts';
import { Rejection } from '#domain/decider.ts';
import { InvalidEvent, UnknownEvent } from '#runtime/eventing/codec.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { isInfrastructureFault, isInstallationFault, isTimeout, stopsLane } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import { suite } from '#test/support/suite.ts';

const coded = (code: string, message = 'asked for'): Error => Object.assign(new Error(message), { code });
const state = (code: string, severity = 'ERROR'): Error =>
  Object.assign(new DatabaseError('asked for', 9, 'error'), { code, severity });
const store = (code: EventStoreErrorCode): Error => new EventStoreError(code, 'asked for');

/** What each says: whether a lane stops at it, and whether a part of the installation failed. */
const cases: readonly [what: string, error: unknown, stops: boolean, blameless: boolean][] = [
  ['a name that does not resolve', coded('ENOTFOUND', 'getaddrinfo ENOTFOUND db'), false, false],
  ['a host with two addresses, both refused', new AggregateError([coded('ECONNREFUSED')]), false, false],
  ['a server that is read-only for a moment', state('25006'), false, false],
  ['a refused connection', coded('ECONNREFUSED'), false, true],
  ['a terminated session', state('57P01', 'FATAL'), false, true],
  ['a deadlock', state('40P01'), false, true],
  ['an error of a library', new Error('asked for'), false, false],
  ['something thrown that is no error', 'asked for', false, false],
  ['Unavailable', new Unavailable('asked for'), false, true],
  ['unavailable', store('unavailable'), false, true],
  ['outcome_unknown', store('outcome_unknown'), false, true],
  ['wrong_expected_revision', store('wrong_expected_revision'), false, false],
  ['access_denied', store('access_denied'), true, false],
  ['too_large', store('too_large'), true, false],
  ['invalid_event', store('invalid_event'), true, false],
  ['log unavailable', new LogError('unavailable', 'asked for'), false, true],
  ['log fenced', new LogError('fenced', 'asked for'), false, false],
  ['log fatal', new LogError('fatal', 'asked for'), true, false],
  ['log partition_mismatch', new LogError('partition_mismatch', 'asked for'), true, false],
  ['blob store unavailable', new BlobError('unavailable', 'asked for'), false, true],
  ['a blob that is not there', new BlobError('not_found', 'asked for'), false, false],
  ['wrong data', state('22P02'), true, false],
  ['a violated constraint', state('23505'), true, false],
  ['a refused password', state('28P01'), true, false],
  ['an unknown table', state('42P01'), true, false],
  ['a row that one statement writes twice', state('21000'), true, false],
  ['a row that is too large for its index', state('54000'), true, false],
  ['what a function raises', state('P0001'), true, false],
  ['a disk that is full', state('53100'), false, true],
  ['a plan that a migration made stale', state('0A000'), false, false],
  ['InvalidEvent', new InvalidEvent('s-1', 'T', 'asked for'), true, false],
  ['UnknownEvent', new UnknownEvent('s-1', 'T', 'asked for'), true, false],
  ['Rejection', new Rejection('not_found', 'asked for'), true, false],
  ['TypeError', new TypeError('connection'), true, false],
  ['RangeError', new RangeError('asked for'), true, false],
  ['ReferenceError', new ReferenceError('asked for'), true, false],
  ['SyntaxError', new SyntaxError('asked for'), true, false],
  ['URIError', new URIError('asked for'), true, false],
  ['MissingKey', new MissingKey('asked for'), true, false],
  ['BrokenInvariant', new BrokenInvariant('the connection is gone'), true, false],
];

suite('faults', (t) => {
  t('errors that stop a lane, and errors that blame an event', () => {
    for (const [what, error, stops, blameless] of cases) {
      equal(stopsLane(error), stops, `${what}: stops`);
      equal(isInfrastructureFault(error), blameless, `${what}: a part failed`);
    }
  });

  t('missing keys, tables and rights are faults of the installation', () => {
    const whole = [new MissingKey('x'), new UnknownEvent('s-1', 'T', 'x'), store('access_denied'), state('28P01')];
    for (const error of [...whole, state('42P01'), state('42703'), new LogError('fatal', 'x')]) {
      equal(isInstallationFault(error), true, String(error));
    }
    for (const error of [
      new LogError('unavailable', 'x'),
      new InvalidEvent('s-1', 'T', 'x'),
      new TypeError('x'),
      state('22P02'),
      store('too_large'),
    ]) {
      equal(isInstallationFault(error), false, String(error));
    }
  });

  t('a time-out is recognised by its SQLSTATE, also as a cause', () => {
    equal(isTimeout(state('57014')), true);
    equal(isTimeout(new Unavailable('x', { cause: state('57014') })), true);
    equal(isTimeout(state('55P03')), false);
    equal(isTimeout('57014'), false);
  });
});
