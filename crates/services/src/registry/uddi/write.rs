//! Entities into XML, in the order of the schema.

use super::super::model::{
    Bag, Binding, Business, Instance, Reference, Service, TModel, Target, Text,
};
use super::schema::NAMESPACE;
use crate::xml::escape;

/// A document that grows.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) out: String,
}

impl Writer {
    /// The start tag of the root.
    pub(super) fn root(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let mut all = vec![("xmlns", NAMESPACE)];
        all.extend_from_slice(attributes);
        self.start(name, &all);
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }

    pub(super) fn start(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push('>');
    }

    pub(super) fn end(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    pub(super) fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>");
    }

    pub(super) fn text(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.start(name, attributes);
        escape(text, &mut self.out);
        self.end(name);
    }

    pub(super) fn texts(&mut self, name: &str, texts: &[Text]) {
        for text in texts {
            let lang = text.lang.as_deref().map(|lang| ("xml:lang", lang));
            let attributes: Vec<_> = lang.into_iter().collect();
            self.text(name, &attributes, &text.text);
        }
    }

    pub(super) fn reference(&mut self, reference: &Reference) {
        let mut attributes = vec![("tModelKey", &*reference.tmodel)];
        attributes.extend(reference.name.as_deref().map(|name| ("keyName", name)));
        attributes.push(("keyValue", reference.value.as_str()));
        self.empty("keyedReference", &attributes);
    }

    pub(super) fn identifiers(&mut self, identifiers: &[Reference]) {
        if identifiers.is_empty() {
            return;
        }
        self.start("identifierBag", &[]);
        identifiers.iter().for_each(|reference| self.reference(reference));
        self.end("identifierBag");
    }

    pub(super) fn categories(&mut self, bag: &Bag) {
        if bag.is_empty() {
            return;
        }
        self.start("categoryBag", &[]);
        bag.references.iter().for_each(|reference| self.reference(reference));
        for (tmodel, references) in &bag.groups {
            self.start("keyedReferenceGroup", &[("tModelKey", tmodel)]);
            references.iter().for_each(|reference| self.reference(reference));
            self.end("keyedReferenceGroup");
        }
        self.end("categoryBag");
    }

    /// A businessEntity with these services in it.
    pub(super) fn business<'a>(
        &mut self,
        key: &str,
        business: &Business,
        services: impl Iterator<Item = (&'a str, &'a Service)>,
    ) {
        self.start("businessEntity", &[("businessKey", key)]);
        if let Some(urls) = &business.urls {
            urls.write(&mut self.out);
        }
        self.texts("name", &business.names);
        self.texts("description", &business.descriptions);
        if let Some(contacts) = &business.contacts {
            contacts.write(&mut self.out);
        }
        let mut services = services.peekable();
        if services.peek().is_some() {
            self.start("businessServices", &[]);
            services.for_each(|(key, service)| self.service(key, service));
            self.end("businessServices");
        }
        self.identifiers(&business.identifiers);
        self.categories(&business.categories);
        self.end("businessEntity");
    }

    pub(super) fn service(&mut self, key: &str, service: &Service) {
        let attributes = [("serviceKey", key), ("businessKey", &*service.business)];
        self.start("businessService", &attributes);
        self.texts("name", &service.names);
        self.texts("description", &service.descriptions);
        if !service.bindings.is_empty() {
            self.start("bindingTemplates", &[]);
            service.bindings.iter().for_each(|binding| self.binding(key, binding));
            self.end("bindingTemplates");
        }
        self.categories(&service.categories);
        self.end("businessService");
    }

    pub(super) fn binding(&mut self, service: &str, binding: &Binding) {
        let attributes = [("bindingKey", &*binding.key), ("serviceKey", service)];
        self.start("bindingTemplate", &attributes);
        self.texts("description", &binding.descriptions);
        match &binding.target {
            Target::Access { use_type, address } => {
                let used = use_type.as_deref().map(|used| ("useType", used));
                let attributes: Vec<_> = used.into_iter().collect();
                self.text("accessPoint", &attributes, address);
            }
            Target::Redirector(to) => self.empty("hostingRedirector", &[("bindingKey", to)]),
        }
        if !binding.instances.is_empty() {
            self.start("tModelInstanceDetails", &[]);
            binding.instances.iter().for_each(|instance| self.instance(instance));
            self.end("tModelInstanceDetails");
        }
        self.categories(&binding.categories);
        self.end("bindingTemplate");
    }

    fn instance(&mut self, instance: &Instance) {
        self.start("tModelInstanceInfo", &[("tModelKey", &instance.tmodel)]);
        self.texts("description", &instance.descriptions);
        if let Some(details) = &instance.details {
            details.write(&mut self.out);
        }
        self.end("tModelInstanceInfo");
    }

    pub(super) fn tmodel(&mut self, key: &str, tmodel: &TModel) {
        let mut attributes = vec![("tModelKey", key)];
        if tmodel.is_deleted {
            attributes.push(("deleted", "true"));
        }
        self.start("tModel", &attributes);
        self.texts("name", std::slice::from_ref(&tmodel.name));
        self.texts("description", &tmodel.descriptions);
        for overview in &tmodel.overviews {
            overview.write(&mut self.out);
        }
        self.identifiers(&tmodel.identifiers);
        self.categories(&tmodel.categories);
        self.end("tModel");
    }
}
