// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/countconnector"
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/loadbalancingexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/basicauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourcedetectionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/hostmetricsreceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func factories() (otelcol.Factories, error) {
	var failed error
	all := otelcol.Factories{
		Receivers: byType(&failed,
			receiver.Factory(otlpreceiver.NewFactory()),
			filelogreceiver.NewFactory(),
			hostmetricsreceiver.NewFactory(),
			prometheusreceiver.NewFactory(),
		),
		Processors: byType(&failed,
			processor.Factory(memorylimiterprocessor.NewFactory()),
			attributesprocessor.NewFactory(),
			batchprocessor.NewFactory(),
			filterprocessor.NewFactory(),
			k8sattributesprocessor.NewFactory(),
			redactionprocessor.NewFactory(),
			resourcedetectionprocessor.NewFactory(),
			resourceprocessor.NewFactory(),
			tailsamplingprocessor.NewFactory(),
			transformprocessor.NewFactory(),
		),
		Exporters: byType(&failed,
			exporter.Factory(debugexporter.NewFactory()),
			fileexporter.NewFactory(),
			loadbalancingexporter.NewFactory(),
			otlpexporter.NewFactory(),
			otlphttpexporter.NewFactory(),
			prometheusexporter.NewFactory(),
			prometheusremotewriteexporter.NewFactory(),
		),
		Connectors: byType(&failed,
			connector.Factory(countconnector.NewFactory()),
			spanmetricsconnector.NewFactory(),
		),
		Extensions: byType(&failed,
			extension.Factory(basicauthextension.NewFactory()),
			bearertokenauthextension.NewFactory(),
			filestorage.NewFactory(),
			healthcheckextension.NewFactory(),
		),
		Telemetry: otelconftelemetry.NewFactory(),
	}
	return all, failed
}

func byType[F component.Factory](failed *error, list ...F) map[component.Type]F {
	found, err := otelcol.MakeFactoryMap(list...)
	*failed = errors.Join(*failed, err)
	return found
}
