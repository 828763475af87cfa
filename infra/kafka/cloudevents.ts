/** A record as CloudEvents 1.0 in Kafka's binary mode: attributes are headers, the value is the stored bytes. */
import type { IHeaders, KafkaMessage, Message } from 'kafkajs';
import { LogError, type LogRecord } from '#contracts/ports/log.ts';

/** Digits of an int8: extension attributes are strings, and padded numbers sort correctly. */
const digits = 19;
const padded = (value: bigint): string => value.toString().padStart(digits, '0');

export const toMessage = (record: LogRecord, source: string): Message => ({
  partition: record.partition,
  key: record.key,
  value: Buffer.from(record.value.buffer, record.value.byteOffset, record.value.byteLength),
  timestamp: String(Date.parse(record.time)),
  headers: {
    ce_specversion: '1.0',
    ce_id: record.id,
    ce_source: source,
    ce_type: record.type,
    ce_subject: record.stream,
    ce_time: record.time,
    'content-type': 'application/json',
    ce_streamrevision: padded(record.revision),
    ce_commitposition: padded(record.position),
    ce_partitionkey: record.key,
    ce_eventmetadata: Buffer.from(record.metadata.buffer, record.metadata.byteOffset, record.metadata.byteLength),
  },
});

const bytes = (headers: IHeaders | undefined, name: string): Buffer => {
  const value = headers?.[name];
  const one = Array.isArray(value) ? value[0] : value;
  if (one === undefined) throw new Error(`header ${name} is missing`);
  return typeof one === 'string' ? Buffer.from(one) : one;
};

/** @throws LogError `fatal` for a message that this log did not write */
export const toRecord = (topic: string, partition: number, message: KafkaMessage): LogRecord => {
  try {
    const text = (name: string): string => bytes(message.headers, name).toString();
    if (message.value === null) throw new Error('the value is null');
    return {
      topic,
      partition,
      key: text('ce_partitionkey'),
      stream: text('ce_subject'),
      id: text('ce_id'),
      type: text('ce_type'),
      revision: BigInt(text('ce_streamrevision')),
      position: BigInt(text('ce_commitposition')),
      time: text('ce_time'),
      value: message.value,
      metadata: bytes(message.headers, 'ce_eventmetadata'),
    };
  } catch (cause) {
    throw new LogError('fatal', `${topic}-${partition} offset ${message.offset} is not a record of this log`, {
      cause,
    });
  }
};
