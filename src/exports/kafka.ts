export { type KafkaMessage, type KafkaProducer, type KafkaSinkOptions, kafkaSink } from "../events/sinks/kafka.ts";
